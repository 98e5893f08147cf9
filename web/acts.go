package web

import (
	"context"

	"pawl/jobs"
	"pawl/lockrepo/approvals"
	"pawl/lockrepo/keys"
	"pawl/web/ui"
)

// acts does what people ask for on the pages.
type acts struct {
	*jobs.Operator
	asked *approvals.Store
	keys  *keys.Store
}

// NewActs returns what people may do on the pages. Let what it is made of have another pool than the pages: theirs may be
// read-only. store is that of Config.Keys, so that a key that is revoked here is refused at once; nil: keys are made
// elsewhere.
func NewActs(op *jobs.Operator, asked *approvals.Store, store *keys.Store) ui.Acts {
	return &acts{Operator: op, asked: asked, keys: store}
}

func (a *acts) RequestRelease(ctx context.Context, r approvals.Release) (approvals.Request, error) {
	return a.asked.RequestRelease(ctx, r)
}

func (a *acts) Decide(ctx context.Context, id int64, by approvals.Person, approve bool, note string) (approvals.Request, error) {
	q, _, err := a.asked.Decide(ctx, id, by, approve, note)
	return q, err
}

func (a *acts) CreateKey(ctx context.Context, k keys.Key) (string, keys.Key, error) {
	if a.keys == nil {
		return "", keys.Key{}, keys.ErrNotFound
	}
	return a.keys.Create(ctx, k)
}

func (a *acts) RevokeKey(ctx context.Context, id, by string) (keys.Key, error) {
	if a.keys == nil {
		return keys.Key{}, keys.ErrNotFound
	}
	return a.keys.Revoke(ctx, id, by)
}
