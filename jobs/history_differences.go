package jobs

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Kinds of an [EffectDifference].
const (
	DifferenceAbsent = "absent"  // we call it done, and they have not got it
	DifferenceStray  = "stray"   // they have got it, and we don't call it done, or don't know the key
	DifferenceBoth   = "differs" // both have it, and not the same
)

// EffectDifference is what a reconciliation has found, with what the journal says of it now.
type EffectDifference struct {
	Job            string    `json:"job"`
	IdempotencyKey string    `json:"idempotency_key"`
	Kind           string    `json:"kind"`   // absent: they have not got it; stray: they have, and we don't call it done; differs
	Effect         *int64    `json:"effect"` // its id
	Detail         string    `json:"detail"` // what was sent or got: of those who may see payloads
	FirstAt        time.Time `json:"first_at"`
	LastAt         time.Time `json:"last_at"`
	Key            string    `json:"key"`    // of the period; empty: no effect of ours has the idempotency key
	Name           string    `json:"name"`   // the effect's key within the period
	State          string    `json:"state"`  // of the effect
	Period         string    `json:"period"` // state of the period's last revision; empty: it is gone
}

// DifferenceFilter says which differences. The zero value means all of them.
type DifferenceFilter struct {
	Job   string // whose effects were compared
	Key   string // of the period
	After string // the cursor of the last of the page before, see [EffectDifference.Cursor]
	Limit int    // default 100, at most 1000
}

const differencesSQL = `
select d.job, d.idempotency_key, d.kind, d.effect, coalesce(d.detail, '') as detail, d.first_at, d.last_at,
       coalesce(e.key, '') as key, coalesce(e.effect, '') as name, coalesce(e.state, '') as state,
       coalesce((select p.state from pawl.periods p where p.job = e.job and p.key = e.key order by p.revision desc limit 1), '') as period
  from pawl.effect_differences d left join lateral (select * from pawl.effects x where x.id = d.effect limit 1) e on true
 where (@job::text = '' or d.job = @job) and (@key::text = '' or e.key = @key)
   and (@at::timestamptz is null or (d.first_at, d.job, d.idempotency_key) > (@at, @lastjob, @lastkey))
 order by d.first_at, d.job, d.idempotency_key limit @limit`

// Cursor says where a list of differences goes on after this one, see [DifferenceFilter].
func (d EffectDifference) Cursor() string { return cursor(d.FirstAt, d.Job, d.IdempotencyKey) }

// Differences lists what reconciliations have found and not found in order since, the oldest first. An After that is no cursor
// is an [ErrCursor].
func (h *History) Differences(ctx context.Context, f DifferenceFilter) ([]EffectDifference, error) {
	at, rest, err := readCursor(f.After, 2)
	if err != nil {
		return nil, err
	}
	args := pgx.NamedArgs{"job": f.Job, "key": f.Key, "at": at, "lastjob": rest[0], "lastkey": rest[1], "limit": limited(f.Limit)}
	list, err := collect[EffectDifference](ctx, h, "unmatched effects", differencesSQL, args)
	for i := range list {
		utc(&list[i].FirstAt, &list[i].LastAt)
	}
	return list, err
}

// Unmatched is the beginning of [History.Differences] of a job; an empty one means all.
func (h *History) Unmatched(ctx context.Context, job string, limit int) ([]EffectDifference, error) {
	return h.Differences(ctx, DifferenceFilter{Job: job, Limit: limit})
}
