package web

import (
	"context"
	"log/slog"

	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/jobs"
	"pawl/jobs/schedule"
	"pawl/lockrepo/approvals"
	"pawl/lockrepo/keys"
	"pawl/web/ui"
)

// acts does what people ask for on the pages.
type acts struct {
	pool  *pgxpool.Pool
	asked *approvals.Store
	keys  *keys.Store
}

// NewActs returns what people may do on the pages, in pool's database. Let pool be another than that of the pages: theirs may
// be read-only. store is that of Config.Keys, so that a key that is revoked here is refused at once; nil: keys are made
// elsewhere. A nil log discards.
func NewActs(pool *pgxpool.Pool, store *keys.Store, log *slog.Logger) ui.Acts {
	return &acts{pool: pool, asked: approvals.New(pool, log), keys: store}
}

func (a *acts) RequestRelease(ctx context.Context, r approvals.Release) (approvals.Request, error) {
	return a.asked.RequestRelease(ctx, r)
}

func (a *acts) Decide(ctx context.Context, id int64, by approvals.Person, approve bool, note string) (approvals.Request, error) {
	q, _, err := a.asked.Decide(ctx, id, by, approve, note)
	return q, err
}

func (a *acts) Pause(ctx context.Context, job string, c jobs.PauseConfig) error {
	return jobs.Pause(ctx, a.pool, job, c)
}

func (a *acts) Resume(ctx context.Context, job string, by jobs.By, owe schedule.CatchUp) (int, error) {
	return jobs.ResumeAs(ctx, a.pool, job, by, owe)
}

func (a *acts) Trigger(ctx context.Context, job string, by jobs.By) (string, error) {
	return jobs.TriggerAs(ctx, a.pool, job, by)
}

func (a *acts) Rerun(ctx context.Context, job, key string, c jobs.RerunConfig) (int, error) {
	return jobs.Rerun(ctx, a.pool, job, key, c)
}

func (a *acts) Retry(ctx context.Context, job, key string, by jobs.By) error {
	return jobs.RetryAs(ctx, a.pool, job, key, by)
}

func (a *acts) Cancel(ctx context.Context, job, key string, by jobs.By) error {
	return jobs.CancelAs(ctx, a.pool, job, key, by)
}

func (a *acts) BackfillList(ctx context.Context, job, from, to string) ([]jobs.BackfillPeriod, error) {
	return jobs.BackfillList(ctx, a.pool, job, from, to)
}

func (a *acts) Backfill(ctx context.Context, job, from, to string, by jobs.By) ([]jobs.BackfillPeriod, error) {
	return jobs.BackfillAs(ctx, a.pool, job, from, to, by)
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
