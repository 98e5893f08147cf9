// Command report publishes a statement per tenant and month, as CSV and as printable HTML, with worker processes that are
// killed and paused meanwhile. A reader never sees a statement that is torn, missing or older than one that it saw before.
package main
