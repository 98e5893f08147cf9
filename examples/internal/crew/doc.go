// Package crew plays an example: on a Postgres of its own, with worker processes of the example's own binary, and with
// somebody who kills and pauses those that hold something. It promises that a play has had its kills, its pauses and at least
// one takeover when it ends: what it shows is not fair weather.
package crew
