// Package apicheck holds the lock API to what a lock is, with many clients at
// once and over real sockets: no two leases overlap, tokens grow, and what
// concurrent clients were told, some of whom have lost the answer, is what a
// single lock could have told them one after the other.
package apicheck
