//go:build !linux

package guardian

import "time"

// waker does nothing here: who is stopped stays so.
type waker struct{}

func newWaker() *waker { return &waker{} }

func (*waker) at(time.Duration) {}

func (*waker) end() {}
