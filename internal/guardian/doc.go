// Package guardian runs a command for as long as a lease lasts, and no longer.
//
// Three processes take part: the owner, which keeps the lease and says until
// when the command may run; the guardian, a process of the same binary in a
// session of its own; and the command, in a process group of its own below the
// guardian.
//
// On Linux it promises, as long as the machine runs:
//   - When the owner ends, however it ends, a pipe closes. The guardian sends
//     TERM to the command and all its descendants, and KILL when the grace is
//     over, but before the deadline.
//   - When the owner is stopped, or can't renew the lease, no newer deadline
//     arrives. TERM is sent a grace before the deadline, KILL before it.
//   - When the guardian is killed, the kernel kills the command, and the owner
//     kills what the command has left: an owner with [Command.Sole] is a child
//     subreaper too, so orphans fall to it, those that have left session and
//     group among them; any owner finds those that carry the marker.
//   - When the guardian is stopped, the owner kills it at the deadline, and then
//     the same.
//   - When both are stopped, or one is and the other killed, the kernel wakes who
//     is left: each has a timer that sends it CONT at the deadline.
//   - When the command ends by itself, what it has left running is ended before
//     the result is told.
//
// The result is told when no process of the tree is left. The clock is
// CLOCK_BOOTTIME, which goes on while the machine sleeps.
//
// What escapes: a process that other services start on the command's behalf (a
// container, a unit of systemd's, a job of at or cron, anything on another
// machine); one whose user the guardian may not signal (a set-uid program); the
// orphans of a command whose owner and guardian are both killed with KILL in
// the same instant. A process that the kernel can't end, since it hangs in a
// device, is waited for.
//
// Elsewhere only the process group is ended: who leaves it escapes, and so does
// the whole command when the guardian is killed.
package guardian
