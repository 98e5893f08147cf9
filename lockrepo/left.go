package lockrepo

import "time"

// Left is how long the holder may still believe in the lease, by this
// machine's clocks; 0 or less: not any more. A renewal moves it, in the Lease
// that it returns.
func (l Lease) Left() time.Duration { return l.left(Now()) }
