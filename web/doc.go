// Package web shows what is true right now: one page, the same as JSON, and the answers that machines ask for.
//
// # The promise
//
//   - Everything is read from the database when somebody looks, at most once a second however many look.
//   - Nothing here changes anything: every route answers GET and HEAD only.
//   - A part that the database doesn't answer says why in its place; the other parts stand. When no part answers,
//     the page is a 503.
//   - /healthz is 200 while the process can answer, whatever the database does. /readyz is 503 with the reason when
//     this process can't take work.
//   - The page works without JavaScript, under a policy that allows no inline script or style, and loads nothing
//     from elsewhere. With JavaScript it renews itself and keeps the reader's place.
//   - Every error is a problem document (RFC 9457), those of the router too.
//
// There is no sign-in, so [CheckListen] refuses every address but loopback unless the operator insists; then the
// page and the log say so.
package web
