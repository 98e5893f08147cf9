package jobs

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"
)

// MessageInfo is a message of an outbox, for people.
type MessageInfo struct {
	Outbox     string          `json:"outbox"`
	Key        string          `json:"period"` // the key of its period, by which it is retried or cancelled
	MessageKey string          `json:"key"`
	Seq        int64           `json:"seq"`
	State      string          `json:"state"` // of its period
	Waits      string          `json:"waits"` // dead: one before it in its key is
	Attempts   int             `json:"attempts"`
	Body       json.RawMessage `json:"body"`
	At         time.Time       `json:"at"`
	EndedAt    *time.Time      `json:"ended_at"`
	Error      string          `json:"error"` // of its last run
}

// MessageFilter says which messages. The zero value means all of them.
type MessageFilter struct {
	Outbox     string
	MessageKey string
	State      string // a period's state
	Limit      int    // default 100, at most 1000
}

const (
	messageColumns = `
select m.job as outbox, m.period as key, m.key as message_key, m.seq, p.state, coalesce(p.waits, '') as waits, p.attempts, m.body::json as body, m.at, p.ended_at,
       coalesce((select r.error from pawl.runs r where r.id = p.run), '') as error`

	messagesSQL = messageColumns + `
  from pawl.outbox m cross join lateral (
    select * from pawl.periods x where x.job = m.job and x.key = m.period order by x.revision desc limit 1) p
 where (@outbox::text = '' or m.job = @outbox) and (@key::text = '' or m.key = @key) and (@state::text = '' or p.state = @state)
 order by m.job, m.at, m.period limit @limit`

	// Of many messages few are dead: they are found by what they wait for.
	deadMessagesSQL = messageColumns + `
  from pawl.periods p join pawl.outbox m on m.job = p.job and m.period = p.key
 where p.waits is not null and p.state = @state and (@outbox::text = '' or p.job = @outbox) and (@key::text = '' or m.key = @key)
 order by p.scheduled_at, m.job, m.period limit @limit`
)

// Messages lists what was enqueued, each outbox's oldest first.
func (h *History) Messages(ctx context.Context, f MessageFilter) ([]MessageInfo, error) {
	if err := oneOf("message", f.State, stateOpen, stateRunning, stateComplete, stateDead, stateCancelled, stateSkipped); err != nil {
		return nil, err
	}
	args := pgx.NamedArgs{"outbox": f.Outbox, "key": f.MessageKey, "state": f.State, "limit": limited(f.Limit)}
	sql := messagesSQL
	if f.State == stateDead {
		sql = deadMessagesSQL
	}
	list, err := collect[MessageInfo](ctx, h, "messages", sql, args)
	for i := range list {
		utc(&list[i].At, list[i].EndedAt)
	}
	return list, err
}
