// Package pgdev runs a private Postgres as a child process.
//
// It promises:
//   - Nobody else can reach the server. It listens on a unix socket in a
//     directory of its own and on no port.
//   - The server never outlives its owner, however the owner ends. A watchdog
//     that holds a pipe to the owner stops the server and removes a throw-away
//     directory; on Linux the kernel signals the server as well, and the next
//     Start removes what even that left behind.
//   - It works as root, by running the server as postgres or nobody, because
//     Postgres refuses to run as root.
//   - A directory belongs to one owner at a time.
//
// Only the demo, the examples and the tests use it: a lock store that appears
// by itself would let two hosts each hold the same lock.
package pgdev
