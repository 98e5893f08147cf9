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
	Key        string          `json:"key"` // of its period, by which it is retried or cancelled
	MessageKey string          `json:"message_key"`
	Seq        int64           `json:"seq"`
	State      string          `json:"state"` // of its period
	Waits      string          `json:"waits"` // dead: one before it in its key is
	Attempts   int             `json:"attempts"`
	Revision   int             `json:"revision"` // of its period
	Token      int64           `json:"token"`    // of the run that has it or had it last; 0: none
	Body       json.RawMessage `json:"body"`
	At         time.Time       `json:"at"`
	EndedAt    *time.Time      `json:"ended_at"`
	NotBefore  *time.Time      `json:"not_before"` // when it is tried again
	Error      string          `json:"error"`      // of its last run
	Behind     int             `json:"behind"`     // of a dead one: how many of its key wait for it; 1001 stands for more than 1000
}

// MessageFilter says which messages. The zero value means all of them.
type MessageFilter struct {
	Outbox     string
	MessageKey string
	Key        string // of its period
	State      string // a period's state, or waiting: open and running
	After      string // the cursor of the last of the page before, see [MessageInfo.Cursor]; only with dead, waiting, open and running
	Limit      int    // default 100, at most 1000
}

// MessageWaiting in MessageFilter.State means what isn't sent yet, nor given up.
const MessageWaiting = "waiting"

const (
	messageColumns = `
select m.job as outbox, m.period as key, m.key as message_key, m.seq, p.state, coalesce(p.waits, '') as waits, p.attempts, p.revision, coalesce(p.token, 0) as token,
       m.body::json as body, m.at, p.ended_at, p.not_before, coalesce((select r.error from pawl.runs r where r.id = p.run), '') as error,
       case when p.state <> 'dead' then 0 else (select count(*) from (
         select from pawl.outbox n cross join lateral (
           select x.state from pawl.periods x where x.job = n.job and x.key = n.period order by x.revision desc limit 1) q
          where n.job = m.job and n.key = m.key and n.seq > m.seq and q.state in ('open', 'running') limit 1001) b) end as behind`

	messagesSQL = messageColumns + `
  from pawl.outbox m cross join lateral (
    select * from pawl.periods x where x.job = m.job and x.key = m.period order by x.revision desc limit 1) p
 where (@outbox::text = '' or m.job = @outbox) and (@key::text = '' or m.key = @key) and (@state::text = '' or p.state = @state)
   and (@period::text = '' or m.period = @period)
 order by m.job, m.at, m.period limit @limit`

	// Of many messages few are dead or wait: they are found by their periods, and only then by what they say. To whom the
	// periods belong is asked of the schedules, under a former name too.
	deadMessagesSQL    = messageColumns + ` from (` + fewPeriods + waiting + `) p` + fewMessages
	waitingMessagesSQL = messageColumns + ` from (` + fewPeriods + waiting + ` union all ` + fewPeriods + unfinished + `) p` + fewMessages

	fewMessages = `
 cross join lateral (select * from pawl.outbox x where x.job = p.job and x.period = p.key limit 1) m
 where (@key::text = '' or m.key = @key) and (@period::text = '' or m.period = @period)
 order by p.scheduled_at, p.job, p.key limit @limit`

	fewPeriods = `
    select * from pawl.periods where parent is null and state = any (@states::text[]) and (@at::timestamptz is null or (scheduled_at, job, key) > (@at, @lastjob, @lastperiod))
       and job = any (array(select s.job from pawl.schedules s where s.definition ->> 'outbox' = 'true' and (@outbox::text = '' or s.job = @outbox)
                            union all select f.former from pawl.renames f join pawl.schedules s on s.job = f.job
                                       where f.done_at is null and s.definition ->> 'outbox' = 'true' and (@outbox::text = '' or s.job = @outbox)))
       and `
)

// Cursor says where a list of messages goes on after this one, see [MessageFilter].
func (m MessageInfo) Cursor() string { return cursor(m.At, m.Outbox, m.Key) }

// Messages lists what was enqueued: dead and waiting ones the oldest first, others each outbox's oldest first. An After that is
// no cursor is an [ErrCursor].
func (h *History) Messages(ctx context.Context, f MessageFilter) ([]MessageInfo, error) {
	if err := oneOf("message", f.State, stateOpen, stateRunning, stateComplete, stateDead, stateCancelled, stateSkipped, MessageWaiting); err != nil {
		return nil, err
	}
	at, rest, err := readCursor(f.After, 2)
	if err != nil {
		return nil, err
	}
	args := pgx.NamedArgs{
		"outbox": f.Outbox, "key": f.MessageKey, "period": f.Key, "state": f.State, "states": []string{f.State},
		"at": at, "lastjob": rest[0], "lastperiod": rest[1], "limit": limited(f.Limit),
	}
	sql := messagesSQL
	switch f.State {
	case MessageWaiting:
		sql, args["states"] = waitingMessagesSQL, []string{stateOpen, stateRunning}
	case stateOpen, stateRunning:
		sql = waitingMessagesSQL
	case stateDead:
		sql = deadMessagesSQL
	}
	list, err := collect[MessageInfo](ctx, h, "messages", sql, args)
	for i := range list {
		utc(&list[i].At, list[i].EndedAt, list[i].NotBefore)
	}
	return list, err
}
