// Package clocks reads this machine's three clocks, for those who must not
// believe in a lease for longer than it lasts.
//
// It promises that [Reading.Proven] never counts less than what has passed
// while the process, or the machine, was stopped, wherever the system has a
// clock that goes on in a suspended machine; and that setting the wall clock
// doesn't change it.
package clocks
