// Package gather turns concurrent single requests into few calls: what waits while a call is on its way goes together
// with the next. A lone request is never delayed for company, and one that the server refuses suffers for itself alone.
package gather
