package jobs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"pawl/fence"
	"pawl/jobs/schedule"
)

// Dispatch is a message on its way out.
type Dispatch struct {
	Outbox         string
	Key            string          // messages of one key come in order, one at a time
	Seq            int64           // within the key, without gaps; receivers may refuse one that is not above the last
	IdempotencyKey string          // the same each time that this message is sent
	Body           json.RawMessage // as it was enqueued
	At             time.Time       // of the enqueueing
	Again          bool            // an earlier run may have sent it
}

// Outbox makes a job of j whose periods are the messages that [Run.Enqueue] and [Enqueue] put into it: each is sent at least
// once, those of a key in the order in which they were committed. A message that is dead holds those behind it in its
// key, until a person retries ([Retry]) or drops it ([Cancel]). j has the name, TTL, timeout, retries and owner; schedule,
// overlap, on-dead and function are the outbox's: a job that says others is refused by [Runner.Add]. What send returns counts as what
// a [Func] does: [ErrNoRetry], [ErrUncertain], a [RetryError].
//
// A message costs a start and an end, about as much as a period of a small job.
func Outbox(j Job, send func(ctx context.Context, run *Run, d Dispatch) error) Job {
	j.outbox, j.ownFunc = true, j.Func != nil
	j.Schedule, j.Overlap, j.OnDead = cmp.Or(j.Schedule, "@manual"), cmp.Or(j.Overlap, OverlapAllow), cmp.Or(j.OnDead, OnDeadHoldNext)
	j.Func = nil
	if send != nil {
		j.Func = func(ctx context.Context, run *Run) error { return run.dispatch(ctx, send) }
	}
	return j
}

// checkOutbox refuses what an outbox has of its own.
func (j Job) checkOutbox() error {
	bad := func(field string, value any) error {
		return &ConfigError{j.Name, field, value, "leave it out: an outbox sends what is enqueued, in order per key, by the function that Outbox was given"}
	}
	switch {
	case !j.outbox:
		return nil
	case j.Schedule != "@manual":
		return bad("Schedule", j.Schedule)
	case j.Overlap != OverlapAllow:
		return bad("Overlap", j.Overlap)
	case j.OnDead != OnDeadHoldNext:
		return bad("OnDead", j.OnDead)
	case j.ownFunc:
		return bad("Func", "a function")
	}
	return nil
}

// refuseOutbox refuses an act that would owe a period without a message.
func (p *planned) refuseOutbox() error {
	if !p.Outbox {
		return nil
	}
	return &schedule.FieldError{
		Field: "job", Value: p.Job, Problem: "is an outbox: it owes its messages, and nothing by itself",
		Fix: "enqueue a message, with jobs.Enqueue or select pawl.enqueue(…); a dead one is sent again with: pawl job retry " + p.Job + " PERIOD",
	}
}

const (
	// Is there a message before it that waits for a person? It became dead while this one was enqueued.
	dispatchSQL = `
select m.key, m.seq, m.body, m.at, exists (
         select from pawl.periods d where d.job = p.job and d.lock = p.lock and d.waits = 'decision' and d.scheduled_at < p.scheduled_at)
  from pawl.runs r join pawl.periods p on p.job = r.job and p.key = r.key and p.revision = r.revision
  join pawl.outbox m on m.job = p.job and m.period = p.key
 where r.id = $1::text::uuid`

	behindSQL = `
update pawl.periods p set waits = 'dead', max_attempts = p.max_attempts + 1 from pawl.runs r
 where r.id = $1::text::uuid and p.job = r.job and p.key = r.key and p.revision = r.revision and p.run = r.id`
)

var errBehind = errors.New("jobs: a message before it is dead and waits for a decision")

func (r *Run) dispatch(ctx context.Context, send func(context.Context, *Run, Dispatch) error) error {
	d, behind := Dispatch{Outbox: r.Job, Again: r.Attempt > 1 || r.Revision > 1}, false
	var body string
	err := r.runner.pool.QueryRow(ctx, dispatchSQL, r.ID.String()).Scan(&d.Key, &d.Seq, &body, &d.At, &behind)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return fmt.Errorf("%w: no message was enqueued for it", ErrSkip)
	case err != nil:
		return fmt.Errorf("jobs: message of %s %s: %w", r.Job, r.Period.Key, err)
	case behind:
		err := r.Tx(ctx, func(tx pgx.Tx) error { _, err := tx.Exec(ctx, behindSQL, r.ID.String()); return err })
		return errors.Join(errBehind, err)
	}
	d.Body, d.At = json.RawMessage(body), d.At.UTC()
	if d.IdempotencyKey, err = r.EffectKey(ctx); err != nil {
		return err
	}
	if err := r.alive(ctx); err != nil {
		return err
	}
	return send(ctx, r, d)
}

// Message is what is to be sent.
type Message struct {
	Outbox string // the name of a job that Outbox has made and some runner has registered
	Key    string // whose messages come in order, such as a customer's: 1 to 120 bytes of UTF-8 without NUL
	Body   any    // at most 64 KiB as JSON
}

const (
	mostOutboxKey = 120
	enqueueSQL    = `select seq from pawl.enqueue($1, $2, $3)`
	noOutbox      = "P0002" // raised by pawl.enqueue
)

// Enqueue puts a message into an outbox, so that it commits with what else tx writes, the transaction that [Run.Tx] or
// [Run.Complete] gave, and is guarded with it.
func (r *Run) Enqueue(ctx context.Context, tx pgx.Tx, m Message) (seq int64, err error) {
	if g, ok := tx.(*guarded); !ok || g.run != r {
		return 0, errors.New("jobs: Run.Enqueue needs the transaction that Run.Tx gave; for another one there is jobs.Enqueue")
	}
	seq, err = Enqueue(ctx, tx, m)
	if err != nil {
		return 0, fence.Wrap(err, r.token)
	}
	return seq, nil
}

// Enqueue puts a message into an outbox as part of any transaction on pawl's database, and returns its number within the
// key. Until the commit, others who enqueue under the key wait: that makes the numbers the order of commits. It returns
// [ErrUnknownJob] if there is no such outbox, or a [*ConfigError].
func Enqueue(ctx context.Context, tx pgx.Tx, m Message) (seq int64, err error) {
	body, err := json.Marshal(m.Body)
	switch {
	case err != nil:
		return 0, fmt.Errorf("jobs: body of a message for %q: %w", m.Outbox, err)
	case m.Key == "" || len(m.Key) > mostOutboxKey || storable(m.Key) != m.Key:
		return 0, &ConfigError{m.Outbox, "Message.Key", m.Key, "use 1 to 120 bytes of UTF-8 without NUL"}
	case len(body) > mostRequest:
		return 0, &ConfigError{m.Outbox, "Message.Body", fmt.Sprint(len(body), " bytes"), "keep it within 64 KiB: a reference will do"}
	}
	err = tx.QueryRow(ctx, enqueueSQL, m.Outbox, m.Key, storable(string(body))).Scan(&seq)
	if pg := (*pgconn.PgError)(nil); errors.As(err, &pg) && pg.Code == noOutbox {
		return 0, fmt.Errorf("%w %q: it is no outbox that is stored; start a runner that has its job", ErrUnknownJob, m.Outbox)
	}
	if err != nil {
		return 0, fmt.Errorf("jobs: enqueue for %s %q: %w", m.Outbox, m.Key, err)
	}
	return seq, nil
}

// Whether the head of a lock's line has no delivery on its way. All replicas hear of the commit; one makes it.
const undeliveredSQL = `
select not exists (select from pawl.runs r where r.lock = $1 and r.ended_at is null)
   and not exists (select from pawl.lanes n join pawl.river_job j on j.id = n.delivery
                    where n.lock = $1 and j.state in ('available', 'scheduled', 'pending', 'retryable'))`

// enqueued makes the delivery of messages whose transaction has committed. What it misses the backstop finds.
func (r *Runner) enqueued(ctx context.Context, lock string) error {
	var due bool
	if err := r.pool.QueryRow(ctx, undeliveredSQL, lock).Scan(&due); err != nil || !due {
		return err
	}
	if err := r.advance(ctx, lock); err != nil {
		r.log.WarnContext(ctx, "message waits for the backstop to deliver it", "lock", lock, "error", err)
	}
	return nil
}
