package web

import (
	"context"
	"time"

	"pawl/fence"
	"pawl/lockrepo"
)

// storeTimeout bounds one question to the database. It ends before a server's own limits do: who waits is told that the
// outcome is unknown.
const storeTimeout = 5 * time.Second

// boundedAPI is a lock store whose every call ends in time, whatever holds up its connections.
type boundedAPI struct{ API }

func within[T any](ctx context.Context, call func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	return call(ctx)
}

func (b boundedAPI) AcquireRequest(ctx context.Context, q lockrepo.Request) (lockrepo.Lease, error) {
	return within(ctx, func(ctx context.Context) (lockrepo.Lease, error) { return b.API.AcquireRequest(ctx, q) })
}

func (b boundedAPI) AcquireIdempotent(ctx context.Context, q lockrepo.Request, key string, body [32]byte) (lockrepo.Lease, error) {
	return within(ctx, func(ctx context.Context) (lockrepo.Lease, error) { return b.API.AcquireIdempotent(ctx, q, key, body) })
}

func (b boundedAPI) RenewAs(ctx context.Context, a lockrepo.As) (lockrepo.Info, error) {
	return within(ctx, func(ctx context.Context) (lockrepo.Info, error) { return b.API.RenewAs(ctx, a) })
}

func (b boundedAPI) ReleaseAs(ctx context.Context, a lockrepo.As) error {
	_, err := within(ctx, func(ctx context.Context) (struct{}, error) { return struct{}{}, b.API.ReleaseAs(ctx, a) })
	return err
}

func (b boundedAPI) Show(ctx context.Context, lock string) (lockrepo.Info, error) {
	return within(ctx, func(ctx context.Context) (lockrepo.Info, error) { return b.API.Show(ctx, lock) })
}

func (b boundedAPI) List(ctx context.Context, f lockrepo.Filter) ([]lockrepo.Info, error) {
	return within(ctx, func(ctx context.Context) ([]lockrepo.Info, error) { return b.API.List(ctx, f) })
}

func (b boundedAPI) History(ctx context.Context, lock string, limit int, before int64) ([]lockrepo.Tenure, error) {
	return within(ctx, func(ctx context.Context) ([]lockrepo.Tenure, error) { return b.API.History(ctx, lock, limit, before) })
}

func (b boundedAPI) CheckTarget(ctx context.Context, tok fence.Token, target string) (current bool, last *int64, err error) {
	current, err = within(ctx, func(ctx context.Context) (now bool, err error) {
		now, last, err = b.API.CheckTarget(ctx, tok, target)
		return now, err
	})
	return current, last, err
}
