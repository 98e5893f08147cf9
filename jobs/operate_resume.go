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
	resumeSQL = `
update pawl.schedules set paused_at = null, paused_by = null, pause_note = null, paused_until = null, resume = 'none',
       watermark = $2::timestamptz, next_at = $3::timestamptz where job = $1`

	heldSQL = `
select key, revision, lock, ticks, scheduled_at, coalesce(last_at, scheduled_at) from pawl.periods
 where job = $1 and state = 'held' and waits is not null and ended_at is null order by scheduled_at`

	// What stays held was never run.
	endHeldSQL = `
update pawl.periods set ended_at = clock_timestamp(), waits = null where job = $1 and state = 'held' and waits is not null and ended_at is null`

	// A run that went on through the pause has its mark still.
	endMarksSQL = `update pawl.periods set waits = null where job = $1 and waits = 'paused' and ended_at is not null`

	shortenSQL = `
update pawl.periods set ticks = $4::int, last_at = case when $4::int > 1 then $5::timestamptz end where job = $1 and key = $2 and revision = $3`

	mostResumed = 10_000 // ticks
)

// Resume ends a job's pause. What was owed before it goes on. owe says which of the ticks that came meanwhile are owed now:
// none ("" too), latest or all, of hours and single ticks only those within the catch-up window; the others stay held. It
// returns how many are owed, or [ErrUnknownJob], [ErrNotPaused] or [ErrTooMany].
func Resume(ctx context.Context, pool *pgxpool.Pool, job, actor string, owe schedule.CatchUp) (n int, err error) {
	return ResumeAs(ctx, pool, job, By{Actor: actor}, owe)
}

// ResumeAs is [Resume] with a reason and what its author saw: a pause that began at another time isn't ended.
func ResumeAs(ctx context.Context, pool *pgxpool.Pool, job string, by By, owe schedule.CatchUp) (n int, err error) {
	if owe == "" {
		owe = schedule.CatchUpNone
	}
	if err := checkOwe(job, owe); err != nil {
		return 0, err
	}
	err = operate(ctx, pool, job, func(ctx context.Context, tx pgx.Tx, p *planned) error {
		if p.pausedAt == nil {
			return fmt.Errorf("%w: %s", ErrNotPaused, job)
		}
		if seen := by.Seen.PausedAt; !seen.IsZero() && !seen.Equal(*p.pausedAt) {
			return fmt.Errorf("%w: %s was paused anew at %s", ErrChanged, job, p.pausedAt.UTC().Format(time.RFC3339))
		}
		n, err = resume(ctx, tx, p, by, owe)
		return err
	})
	return n, err
}

// held is a row of ticks that came during a pause.
type held struct {
	key, lock       string
	revision, ticks int
	at, last        time.Time
}

func resume(ctx context.Context, tx pgx.Tx, p *planned, by By, owe schedule.CatchUp) (int, error) {
	locks, err := enterAll(ctx, tx, p.Job, p.Lock)
	if err != nil {
		return 0, err
	}
	if err := planUp(ctx, tx, p); err != nil {
		return 0, err
	}
	rows, err := tx.Query(ctx, heldSQL, p.Job)
	if err != nil {
		return 0, err
	}
	hs, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (h held, err error) {
		return h, row.Scan(&h.key, &h.revision, &h.lock, &h.ticks, &h.at, &h.last)
	})
	if err != nil {
		return 0, err
	}
	o, err := p.release(hs, owe)
	if err != nil {
		return 0, err
	}
	locks = append(locks, o.locks...) // with Overlap allow: of periods that nobody else knows yet
	var b batch
	b.Queue(laneSQL, locks)
	b.Queue(resumeSQL, p.Job, p.watermark, nextAt(p.schedule, p.watermark))
	for _, h := range o.shorter {
		b.Queue(shortenSQL, p.Job, h.key, h.revision, h.ticks, h.last)
	}
	b.Queue(reopenSQL, p.Job, o.keys, o.revisions, p.runs, "", 0)
	if len(o.fresh) > 0 {
		queueOwe(&b, o.fresh, &[]owed{})
	}
	b.Queue(endHeldSQL, p.Job)
	b.Queue(endMarksSQL, p.Job)
	b.Queue(unmarkSQL, p.Job)
	b.Queue(rewaitSQL, p.Job, locks, nil)
	n := len(o.keys) + len(o.fresh)
	queueAudit(&b, by.Actor, "resume", p.Job, "", "", by.Reason, detail(map[string]any{"owe": owe, "owed": n, "paused_at": p.pausedAt}))
	b.Queue(leaveSQL, locks)
	return n, tx.SendBatch(ctx, &b).Close()
}

// released is what becomes of held rows: some are owed, stretches give up ticks that become rows of their own.
type released struct {
	keys      []string
	revisions []int
	shorter   []held
	fresh     []periodRow
	locks     []string
}

func (p *planned) release(hs []held, owe schedule.CatchUp) (o released, err error) {
	switch {
	case owe == schedule.CatchUpNone || len(hs) == 0:
		return o, nil
	case owe == schedule.CatchUpLatest:
		hs = hs[len(hs)-1:]
	}
	for _, h := range hs {
		if h.ticks == 1 {
			o.keys, o.revisions, o.locks = append(o.keys, h.key), append(o.revisions, h.revision), append(o.locks, h.lock)
			continue
		}
		if err := p.split(h, owe, &o); err != nil {
			return o, err
		}
	}
	return o, nil
}

// split takes the ticks that are owed off the end of a stretch.
func (p *planned) split(h held, owe schedule.CatchUp, o *released) error {
	policy, err := p.schedule.Policy(p.policy())
	if err != nil {
		return err
	}
	from := p.now.Add(-policy.Window) // older ones stay held
	if from.Before(h.at) {
		from = h.at
	}
	if owe == schedule.CatchUpLatest {
		from = h.last
	}
	ticks, mark := p.schedule.Ticks(from.Add(-time.Second), h.last, schedule.Policy{CatchUp: schedule.CatchUpAll, Window: h.last.Sub(from) + time.Hour, Max: mostResumed})
	if mark.Before(h.last) {
		return fmt.Errorf("%w: resuming %s would owe more than %d ticks: owe the latest, or none, and backfill what is needed", ErrTooMany, p.Job, mostResumed)
	}
	for i, t := range ticks {
		if t.At.Equal(h.at) { // the whole stretch: its row becomes the first tick's
			o.keys, o.revisions, o.locks = append(o.keys, h.key), append(o.revisions, h.revision), append(o.locks, h.lock)
			continue
		}
		if i == 0 {
			before, _ := p.schedule.Ticks(h.at.Add(-time.Second), t.At.Add(-time.Second), schedule.Policy{CatchUp: schedule.CatchUpLatest})
			h.last = before[len(before)-1].To
		}
		x := p.row(t)
		x.StartBy, x.LateAt, x.NotBefore = nil, nil, nil
		o.fresh, o.locks = append(o.fresh, x), append(o.locks, x.Lock)
	}
	h.ticks -= len(ticks)
	if len(ticks) > 0 && ticks[0].At.Equal(h.at) {
		h.ticks, h.last = 1, h.at
	}
	o.shorter = append(o.shorter, h)
	return nil
}

// resumeDue resumes a job whose pause has ended by itself.
func (r *Runner) resumeDue(ctx context.Context, p *planned) error {
	n, err := Resume(ctx, r.pool, p.Job, r.cfg.Holder, schedule.CatchUp(p.resume))
	if errors.Is(err, ErrTooMany) { // nobody is there to be asked
		n, err = Resume(ctx, r.pool, p.Job, r.cfg.Holder, schedule.CatchUpLatest)
	}
	if err == nil {
		r.log.InfoContext(ctx, "job resumed: its pause is over", "job", p.Job, "until", p.pausedTill, "owed", n)
	}
	return err
}
