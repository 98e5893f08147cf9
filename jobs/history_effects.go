package jobs

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"
)

// EffectInfo is one try of an effect, for people.
type EffectInfo struct {
	ID             int64           `json:"id"`
	Job            string          `json:"job"`
	Key            string          `json:"period"`
	Revision       int             `json:"revision"` // that first had it: reruns find what was done, unless they repeat effects
	Effect         string          `json:"key"`      // its key within the period
	Try            int             `json:"try"`
	IdempotencyKey string          `json:"idempotency_key"`
	State          string          `json:"state"`
	Request        json.RawMessage `json:"request"`
	Response       json.RawMessage `json:"response"`
	Error          string          `json:"error"`
	Sends          int             `json:"sends"` // how often the call was begun
	Token          int64           `json:"token"` // of who has written it last
	At             time.Time       `json:"at"`    // of the intent
	EndedAt        *time.Time      `json:"ended_at"`
	ValidUntil     *time.Time      `json:"valid_until"`
	DecidedBy      string          `json:"decided_by"`
	Reason         string          `json:"reason"`
	MatchedAt      *time.Time      `json:"matched_at"`   // the other side has last said so, too
	UnderWay       bool            `json:"under_way"`    // a run that lives is at the call
	Period         string          `json:"period_state"` // state of the period's last revision; empty: it is gone
}

// EffectFilter says which effects. The zero value means all of them.
type EffectFilter struct {
	ID     int64
	Job    string
	Key    string // of the period
	State  string // an effect's state, or open: intended and uncertain
	Before int64  // only ids before it: the last of the page before
	Limit  int    // default 100, at most 1000
	Left   bool   // of those without an outcome only what nobody is at: no call that is under way
}

// EffectOpen in EffectFilter.State means what has no outcome yet.
const EffectOpen = "open"

const (
	effectsSQL = `
select e.id, e.job, e.key, e.revision, e.effect, e.try, e.idempotency_key, e.state, e.request::json as request, coalesce(e.response, 'null')::json as response,
       coalesce(e.error, '') as error, e.sends, e.token, e.at, e.ended_at, e.valid_until, coalesce(e.decided_by, '') as decided_by,
       coalesce(e.reason, '') as reason, e.matched_at,
       coalesce((select p.state from pawl.periods p where p.job = e.job and p.key = e.key order by p.revision desc limit 1), '') as period,
       e.state = 'intended' and exists (select from pawl.runs r where r.id = e.run and r.ended_at is null) as under_way
  from pawl.effects e
 where (@id::bigint = 0 or e.id = @id) and (@job::text = '' or e.job = @job) and (@key::text = '' or e.key = @key)
   and (@state::text = '' or e.state = @state or @state = 'open' and e.state in ('intended', 'uncertain'))
   and (@before::bigint = 0 or e.id < @before)
   and (not @left::bool or e.state <> 'intended' or not exists (select from pawl.runs r where r.id = e.run and r.ended_at is null))`
	newestEffects = `
 order by e.id desc limit @limit`

	// openEffects lets the planner go by the index of those few, whatever it knows of the state that is asked for.
	openEffects = ` and e.state in ('intended', 'uncertain')`
)

// Effects lists effects, the newest first.
func (h *History) Effects(ctx context.Context, f EffectFilter) ([]EffectInfo, error) {
	if err := oneOf("effect", f.State, EffectIntended, EffectDone, EffectFailed, EffectUncertain, EffectDropped, EffectOpen); err != nil {
		return nil, err
	}
	args := pgx.NamedArgs{"id": f.ID, "job": f.Job, "key": f.Key, "state": f.State, "before": f.Before, "limit": limited(f.Limit), "left": f.Left}
	sql := effectsSQL
	if f.State == EffectOpen || f.State == EffectIntended || f.State == EffectUncertain {
		sql += openEffects
	}
	list, err := collect[EffectInfo](ctx, h, "effects", sql+newestEffects, args)
	for i := range list {
		x := &list[i]
		utc(&x.At, x.EndedAt, x.ValidUntil, x.MatchedAt)
	}
	return list, err
}

// EffectDifference is what a reconciliation has found.
type EffectDifference struct {
	Job            string    `json:"job"`
	IdempotencyKey string    `json:"idempotency_key"`
	Kind           string    `json:"kind"`   // absent: they have not got it; stray: they have, and we don't call it done; differs
	Effect         *int64    `json:"effect"` // its id
	Detail         string    `json:"detail"`
	FirstAt        time.Time `json:"first_at"`
	LastAt         time.Time `json:"last_at"`
}

const unmatchedSQL = `
select job, idempotency_key, kind, effect, coalesce(detail, '') as detail, first_at, last_at from pawl.effect_differences
 where @job::text = '' or job = @job order by first_at, idempotency_key limit @limit`

// Unmatched lists what reconciliations have found and not found in order since, the oldest first. An empty job means all.
func (h *History) Unmatched(ctx context.Context, job string, limit int) ([]EffectDifference, error) {
	list, err := collect[EffectDifference](ctx, h, "unmatched effects", unmatchedSQL, pgx.NamedArgs{"job": job, "limit": limited(limit)})
	for i := range list {
		utc(&list[i].FirstAt, &list[i].LastAt)
	}
	return list, err
}
