// Package web serves the lock API, the pages (package ui), what the first of them shows as JSON, and the answers that machines
// ask for.
//
// # The promise
//
//   - Everything is read from the database when somebody looks, at most once a second however many look.
//   - GET and HEAD change nothing. Locks are changed by the lock API's POST and DELETE, and by what people do on the pages,
//     which package ui promises. The cookie of a sign-in opens the pages only, never the lock API.
//   - The lock API answers at once. It says acquired true or false only when the database has said so; an answer that
//     can't be had is a 503 with Retry-After, never a 500. Of two callers that race, one gets the lock.
//   - A part that the database doesn't answer says why in its place; the other parts stand. When no part answers,
//     the page is a 503.
//   - /healthz is 200 while the process can answer, whatever the database does. /readyz is 503 with the reason when
//     this process can't take work.
//   - Every error outside of the pages is a problem document (RFC 9457), those of the router too, and every answer has an
//     X-Request-Id, which stands in the log line and beside the lock.
//   - Once a key was ever made, every route but health, metrics and the documentation needs one, for good. Ten wrong keys
//     in a minute close an address for keys that weren't right there before.
//
// The bounds: 16 KiB for headers, 16 KiB for a body, five seconds for a body to arrive and five for an answer.
//
// Without a key [CheckListen] refuses every address but loopback unless the operator insists; then the page and the log
// say so.
package web
