package jobs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/jobs/schedule"
)

const (
	mostBackfilled = 100_000              // periods at once
	shortKept      = 400 * 24 * time.Hour // for so long the rows of hours and single ticks are kept
)

// BackfillPeriod is one period of a range that is, or would be, backfilled. Times are UTC.
type BackfillPeriod struct {
	Key         string    `json:"key"`
	Start       time.Time `json:"start"`
	End         time.Time `json:"end"`
	ScheduledAt time.Time `json:"scheduled_at"` // the tick that owes it
	State       string    `json:"state"`        // as it was before: "" no row, complete, missed, dead, …
	Owe         bool      `json:"owe"`          // false: it is complete, or owed already
}

// BackfillList lists the periods that the job's schedule owes from one key to another, both included, oldest first, without
// changing anything. Ticks that are still to come are left out. The list may be empty. It returns [ErrUnknownJob],
// [ErrTooMany], a [*ParamError], or a [*schedule.FieldError] for a key that isn't one of the job's kind or is older than is
// kept.
func BackfillList(ctx context.Context, pool *pgxpool.Pool, job, from, to string, c BackfillConfig) (list []BackfillPeriod, err error) {
	err = operate(ctx, pool, job, func(ctx context.Context, tx pgx.Tx, p *planned) error {
		if _, err := p.given(nil, c.Params); err != nil {
			return err
		}
		list, _, err = p.backfill(ctx, tx, from, to)
		return err
	})
	return list, err
}

// BackfillConfig says who owes a range again, and with what.
type BackfillConfig struct {
	Actor  string            // goes into the audit
	Reason string            // for the audit; empty where nobody asked for one
	Seen   Seen              // how many periods are owed
	Params map[string]string // by name, as text, for each period that is owed; as in [TriggerConfig]
}

// Backfill owes the periods of [BackfillList] that are neither complete nor owed already, and returns the whole list. They run
// oldest first, after what the schedule itself owes. The watermark stays where it is. A param that can't be given is a
// [*ParamError].
func Backfill(ctx context.Context, pool *pgxpool.Pool, job, from, to string, c BackfillConfig) (list []BackfillPeriod, err error) {
	err = operate(ctx, pool, job, func(ctx context.Context, tx pgx.Tx, p *planned) error {
		var last map[string]latest
		if list, last, err = p.backfill(ctx, tx, from, to); err != nil {
			return err
		}
		given, err := p.given(nil, c.Params)
		if err != nil {
			return err
		}
		keys, revisions, fresh, locks := p.owing(list, last)
		for i := range fresh {
			fresh[i].Params = given
		}
		if n := len(keys) + len(fresh); c.Seen.Owed != 0 && c.Seen.Owed != n {
			return fmt.Errorf("%w: %s to %s of %s would owe %d periods now", ErrChanged, from, to, job, n)
		}
		if len(locks) == 0 {
			return nil
		}
		if locks, err = enterAll(ctx, tx, job, locks...); err != nil {
			return err
		}
		var b batch
		b.Queue(reopenSQL, job, keys, revisions, p.runs, originBackfill, backfillPriority)
		queueParams(&b, job, keys, revisions, given)
		queueOwe(&b, fresh, &[]owed{})
		b.Queue(rewaitSQL, job, locks, nil) // a dead one may have held others
		queueAudit(&b, c.Actor, "backfill", job, "", "", c.Reason, detail(map[string]any{"from": from, "to": to, "owed": len(keys) + len(fresh), "params": c.Params}))
		b.Queue(leaveSQL, locks)
		return tx.SendBatch(ctx, &b).Close()
	})
	return list, err
}

const backfillPriority = 1

// owing splits the list into rows that are opened again and rows that are new.
func (p *planned) owing(list []BackfillPeriod, last map[string]latest) (keys []string, revisions []int, fresh []periodRow, locks []string) {
	fresh = []periodRow{}
	for _, x := range list {
		l := last[x.Key]
		switch {
		case !x.Owe:
			continue
		case !l.exists:
			row := p.row(schedule.Tick{At: x.ScheduledAt, To: x.ScheduledAt, Count: 1, Period: schedule.Period{Key: x.Key, Start: x.Start, End: x.End}})
			row.Origin, row.Priority, row.NotBefore, row.StartBy, row.LateAt, row.DueAt = originBackfill, backfillPriority, nil, nil, nil, nil
			fresh, locks = append(fresh, row), append(locks, row.Lock)
		case l.ticks > 1: // a stretch stays what it is: its first tick gets a revision of its own
			row := p.again(l, originBackfill)
			row.Priority, row.StartAt, row.EndAt = backfillPriority, x.Start, x.End
			fresh, locks = append(fresh, row), append(locks, row.Lock)
		default:
			keys, revisions, locks = append(keys, x.Key), append(revisions, l.revision), append(locks, l.lock)
		}
	}
	return keys, revisions, fresh, locks
}

// backfill lists a range with what is known of its periods.
func (p *planned) backfill(ctx context.Context, tx pgx.Tx, from, to string) ([]BackfillPeriod, map[string]latest, error) {
	list, err := p.between(from, to)
	if err != nil {
		return nil, nil, err
	}
	keys := make([]string, len(list))
	for i, x := range list {
		keys[i] = x.Key
	}
	last, err := latestOf(ctx, tx, p.Job, keys...)
	if err != nil {
		return nil, nil, err
	}
	for i, x := range list {
		state := last[x.Key].state
		list[i].State, list[i].Owe = state, state != stateComplete && state != stateOpen && state != stateRunning
	}
	return list, last, nil
}

// between lists what the schedule's ticks up to now owe between two keys.
func (p *planned) between(from, to string) (list []BackfillPeriod, err error) {
	if err := p.refuseOutbox(); err != nil {
		return nil, err
	}
	if p.schedule.Manual() {
		return nil, &schedule.FieldError{Field: "schedule", Value: p.Schedule, Problem: "owes no periods by itself", Fix: "trigger the job instead"}
	}
	first, err := p.key("from", from)
	if err != nil {
		return nil, err
	}
	last, err := p.key("to", to)
	if err != nil {
		return nil, err
	}
	if last.Start.Before(first.Start) {
		return nil, &schedule.FieldError{Field: "to", Value: to, Problem: "is before " + from, Fix: "give the older key first"}
	}
	back := p.spec()
	back.Offset = -back.Offset
	own, err := schedule.Parse(back) // asked the other way round it says in which period the tick lies
	if err != nil {
		return nil, err
	}
	list = []BackfillPeriod{}
	for t := p.schedule.Next(own.Period(first.Start).Start.Add(-time.Second)); !t.IsZero() && !t.After(p.now); t = p.schedule.Next(t) {
		x := p.schedule.Period(t)
		if x.Start.After(last.Start) {
			break
		}
		if x.Start.Before(first.Start) {
			continue
		}
		if len(list) == mostBackfilled {
			return nil, fmt.Errorf("%w: %s to %s are more than %d: give a shorter range", ErrTooMany, from, to, mostBackfilled)
		}
		list = append(list, BackfillPeriod{Key: x.Key, Start: x.Start, End: x.End, ScheduledAt: t.UTC()})
	}
	return list, nil
}

func (p *planned) key(field, text string) (schedule.Period, error) {
	x, err := p.schedule.ParseKey(text)
	if bad := (&schedule.FieldError{}); errors.As(err, &bad) {
		bad.Field = field
	}
	if err == nil && p.schedule.Kind().Short() && p.now.Sub(x.Start) > shortKept {
		err = &schedule.FieldError{
			Field: field, Value: text, Problem: "is older than 400 days, for which rows of hours and ticks are kept",
			Fix: "give a later key",
		}
	}
	return x, err
}
