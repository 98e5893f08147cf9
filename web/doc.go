// Package web shows what is true right now, one page and the same as JSON, and serves the lock API and the answers that
// machines ask for.
//
// # The promise
//
//   - Everything is read from the database when somebody looks, at most once a second however many look.
//   - The page changes nothing: it answers GET and HEAD only. Locks are changed by the lock API's POST and DELETE alone.
//   - The lock API answers at once. It says acquired true or false only when the database has said so; an answer that
//     can't be had is a 503 with Retry-After, never a 500. Of two callers that race, one gets the lock.
//   - A part that the database doesn't answer says why in its place; the other parts stand. When no part answers,
//     the page is a 503.
//   - /healthz is 200 while the process can answer, whatever the database does. /readyz is 503 with the reason when
//     this process can't take work.
//   - The page works without JavaScript, under a policy that allows no inline script or style, and loads nothing
//     from elsewhere. With JavaScript it renews itself and keeps the reader's place.
//   - Every error is a problem document (RFC 9457), those of the router too, and every answer has an X-Request-Id, which
//     stands in the log line and beside the lock.
//   - Once a key was ever made, every route but health, metrics and the documentation needs one, for good. Ten wrong keys
//     in a minute close an address for keys that weren't right there before.
//
// The bounds: 16 KiB for headers, 16 KiB for a body, five seconds for a body to arrive and five for an answer.
//
// Without a key [CheckListen] refuses every address but loopback unless the operator insists; then the page and the log
// say so.
package web
