// Package ui is the page that an operator trusts at night: who holds which lock, whose lease ended without a release, what
// was refused, which periods are not done, and the acts that a person may take about it.
//
// # The promise
//
//   - Everything on a page comes from rows. A panel that the database doesn't answer within two seconds says so; the other
//     panels stand. Lists are cut at a page and say so, counts end at 10,000.
//   - However many look, one page is read at most once a second. A page that hasn't changed is a 304.
//   - GET and HEAD change nothing. An act has a page of its own with the facts, a reason and the token or revision it was
//     made for; it and its audit row commit together. If the facts have changed meanwhile it is a 409 with a sentence.
//   - What a role may not do is refused first, from the table of routes, and not shown second.
//   - A request from another site changes nothing ([net/http.CrossOriginProtection]).
//   - The pages work without JavaScript, under a policy that allows no inline script or style, and load nothing from
//     elsewhere. With JavaScript they renew themselves and keep focus, scroll and what is open.
//   - Times are UTC by the database's clock, or in the zone that the reader chose, which then stands beside them.
package ui
