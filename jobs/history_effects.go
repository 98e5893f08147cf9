package jobs

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// EffectInfo is one try of an effect, for people.
type EffectInfo struct {
	ID             int64           `json:"id"`
	Job            string          `json:"job"`
	Key            string          `json:"key"`      // of the period
	Revision       int             `json:"revision"` // that first had it: reruns find what was done, unless they repeat effects
	Effect         string          `json:"effect"`   // its key within the period
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
	MatchedAt      *time.Time      `json:"matched_at"` // the other side has last said so, too
	Period         string          `json:"period"`     // state of the period's last revision; empty: it is gone
}

// EffectFilter says which effects. The zero value means all of them.
type EffectFilter struct {
	ID     int64
	Job    string
	Key    string // of the period
	State  string // an effect's state, or open: intended and uncertain
	Before int64  // only ids before it: the last of the page before
	Limit  int    // default 100, at most 1000
}

// EffectOpen in EffectFilter.State means what has no outcome yet.
const EffectOpen = "open"

const (
	ofJob      = ` and (@job::text = '' or e.job = @job)`
	effectsSQL = `
select e.id, e.job, e.key, e.revision, e.effect, e.try, e.idempotency_key, e.state, e.request::json as request, coalesce(e.response, 'null')::json as response,
       coalesce(e.error, '') as error, e.sends, e.token, e.at, e.ended_at, e.valid_until, coalesce(e.decided_by, '') as decided_by,
       coalesce(e.reason, '') as reason, e.matched_at,
       coalesce((select p.state from pawl.periods p where p.job = e.job and p.key = e.key order by p.revision desc limit 1), '') as period
  from pawl.effects e
 where (@id::bigint = 0 or e.id = @id)` + ofJob + ` and (@key::text = '' or e.key = @key)
   and (@state::text = '' or e.state = @state or @state = 'open' and e.state in ('intended', 'uncertain'))
   and (@before::bigint = 0 or e.id < @before)`
	newestEffects = `
 order by e.id desc limit @limit`

	// The planner goes by the index of those few, whatever it knows of the state that is asked for.
	openEffects = ` and e.state in ('intended', 'uncertain')`
	fewEffects  = ` and e.state <> 'done'`

	// A job's newest may be old: written as a range, it keeps the planner from looking for them among everybody's.
	newestOfJob = ` and e.job between @job and @job
 order by e.job desc, e.id desc limit @limit`
)

func (f EffectFilter) sql() string {
	switch f.State {
	case EffectOpen, EffectIntended, EffectUncertain:
		return effectsSQL + openEffects + newestEffects
	case EffectFailed, EffectDropped:
		return effectsSQL + fewEffects + newestEffects
	}
	if f.Job != "" && f.Key == "" {
		return strings.Replace(effectsSQL, ofJob, "", 1) + newestOfJob
	}
	return effectsSQL + newestEffects
}

// Effects lists effects, the newest first.
func (h *History) Effects(ctx context.Context, f EffectFilter) ([]EffectInfo, error) {
	if err := oneOf("effect", f.State, EffectIntended, EffectDone, EffectFailed, EffectUncertain, EffectDropped, EffectOpen); err != nil {
		return nil, err
	}
	args := pgx.NamedArgs{"id": f.ID, "job": f.Job, "key": f.Key, "state": f.State, "before": f.Before, "limit": limited(f.Limit)}
	list, err := collect[EffectInfo](ctx, h, "effects", f.sql(), args)
	for i := range list {
		x := &list[i]
		utc(&x.At, x.EndedAt, x.ValidUntil, x.MatchedAt)
	}
	return list, err
}
