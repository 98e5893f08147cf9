package guardian

import (
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// waker makes the kernel send CONT to this process when a moment on [Clock] has come, and again and again from then on: who
// is stopped can't see that its time is over.
type waker struct {
	id int32
	ok bool
}

// event is the kernel's sigevent.
type event struct {
	_              uintptr
	signal, notify int32
	_              [48]byte
}

// again is between one CONT and the next.
const again = 50 * time.Millisecond

// newWaker returns one that does nothing if there can't be another timer: then others look after who is stopped.
func newWaker() *waker {
	w, e := &waker{}, event{signal: int32(syscall.SIGCONT)}
	_, _, errno := unix.Syscall(unix.SYS_TIMER_CREATE, unix.CLOCK_BOOTTIME, uintptr(unsafe.Pointer(&e)), uintptr(unsafe.Pointer(&w.id)))
	w.ok = errno == 0
	return w
}

func (w *waker) at(moment time.Duration) {
	w.set(unix.ItimerSpec{Interval: unix.NsecToTimespec(int64(again)), Value: unix.NsecToTimespec(int64(max(moment, 1)))})
}

// end gives the timer back.
func (w *waker) end() {
	if w.ok {
		_, _, _ = unix.Syscall(unix.SYS_TIMER_DELETE, uintptr(w.id), 0, 0) // of our own making
	}
	w.ok = false
}

func (w *waker) set(spec unix.ItimerSpec) {
	const absolute = 1
	if w.ok {
		_, _, _ = unix.Syscall6(unix.SYS_TIMER_SETTIME, uintptr(w.id), absolute, uintptr(unsafe.Pointer(&spec)), 0, 0, 0) // of our own making
	}
}
