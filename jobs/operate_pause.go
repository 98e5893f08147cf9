package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/jobs/schedule"
)

// PauseConfig says who pauses a job, and for how long.
type PauseConfig struct {
	Actor string
	Note  string           // why; shown wherever the job is
	Until time.Time        // when it resumes by itself; zero: when somebody resumes it
	Owe   schedule.CatchUp // what of the held ticks is owed at Until: none (default), latest, all
}

const pauseSQL = `
update pawl.schedules set paused_at = $2::timestamptz, paused_by = $3, pause_note = nullif($4, ''), paused_until = $5::timestamptz, resume = $6,
       next_at = least(next_at, $5::timestamptz) where job = $1`

// What was owed already waits; a run that is under way may finish, and its retry waits. A period whose shards run goes on: it
// holds the line of its lock, which nothing that waits does.
const pausePeriodsSQL = `
update pawl.periods set waits = 'paused' where job = $1 and ended_at is null and waits is null and state in ('open', 'running')
   and origin in ('schedule', 'backfill', 'outbox') and lock = any ($2::text[]) and (state = 'open' or shards is null)`

// Pause keeps a job from starting: what it owes waits, and ticks from now on are held, a row for each or, for hours and single
// ticks, one for all. A run that is under way goes on. What a person triggers or reruns meanwhile runs all the same. It
// returns [ErrUnknownJob] or [ErrPaused], or an error that names the field of c that can't be used.
func Pause(ctx context.Context, pool *pgxpool.Pool, job string, c PauseConfig) error {
	return operate(ctx, pool, job, func(ctx context.Context, tx pgx.Tx, p *planned) error {
		if p.pausedAt != nil {
			return fmt.Errorf("%w: %s, since %s", ErrPaused, job, p.pausedAt.UTC().Format(time.RFC3339))
		}
		if err := c.check(job, p.now); err != nil {
			return err
		}
		return pause(ctx, tx, p, c)
	})
}

func (c *PauseConfig) check(job string, now time.Time) error {
	if c.Owe == "" {
		c.Owe = schedule.CatchUpNone
	}
	if !c.Until.IsZero() && !c.Until.After(now) {
		return &ConfigError{job, "Until", c.Until.UTC().Format(time.RFC3339), "give a time that is still to come"}
	}
	return checkOwe(job, c.Owe)
}

func checkOwe(job string, owe schedule.CatchUp) error {
	switch owe {
	case schedule.CatchUpNone, schedule.CatchUpLatest, schedule.CatchUpAll:
		return nil
	}
	return &ConfigError{job, "Owe", string(owe), "use none, latest or all"}
}

func pause(ctx context.Context, tx pgx.Tx, p *planned, c PauseConfig) error {
	locks, err := enterAll(ctx, tx, p.Job, p.Lock)
	if err != nil {
		return err
	}
	var until *time.Time
	if !c.Until.IsZero() {
		until = &c.Until
	}
	var b batch
	b.Queue(pauseSQL, p.Job, p.now, c.Actor, c.Note, until, string(c.Owe))
	b.Queue(pausePeriodsSQL, p.Job, locks)
	b.Queue(rewaitSQL, p.Job, locks, nil)
	b.Queue(unmarkSQL, p.Job)
	queueAudit(&b, c.Actor, "pause", p.Job, "", "", c.Note, detail(map[string]any{"until": until, "owe": c.Owe}))
	b.Queue(leaveSQL, locks)
	return tx.SendBatch(ctx, &b).Close()
}

func detail(v map[string]any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // plain values only
	}
	return string(b)
}

// A dead period whose job says on_dead: pause is marked in the transaction in which it dies (pawl.died).
const (
	markedSQL = `select distinct job from pawl.periods where waits = 'pause'`
	markSQL   = `select key from pawl.periods where job = $1 and waits = 'pause' order by scheduled_at limit 1`
	unmarkSQL = `update pawl.periods set waits = null where job = $1 and waits = 'pause'`
)

// pauseDead pauses a job of which a period is dead, as its definition asks.
func (r *Runner) pauseDead(ctx context.Context, job string) error {
	err := operate(ctx, r.pool, job, func(ctx context.Context, tx pgx.Tx, p *planned) error {
		var key string
		err := tx.QueryRow(ctx, markSQL, job).Scan(&key)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return nil // somebody else has done it
		case err != nil:
			return err
		case p.pausedAt != nil:
			_, err = tx.Exec(ctx, unmarkSQL, job)
			return err
		}
		r.log.WarnContext(ctx, "job paused: a period of it is dead", "job", job, "period", key)
		return pause(ctx, tx, p, PauseConfig{Actor: r.cfg.Holder, Note: "on_dead: period " + key + " is dead", Owe: schedule.CatchUpNone})
	})
	if errors.Is(err, ErrUnknownJob) { // retired meanwhile
		_, err = r.pool.Exec(ctx, unmarkSQL, job)
	}
	return err
}

// tryPauseDead does so after the end of a run; if it can't, the backstop does.
func (r *Runner) tryPauseDead(ctx context.Context, job string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	if err := r.pauseDead(ctx, job); err != nil {
		r.log.WarnContext(ctx, "job with a dead period is not paused yet: the backstop does it", "job", job, "error", err)
	}
}

// pauseMarked pauses what a process left to be paused that died after its commit.
func (r *Runner) pauseMarked(ctx context.Context) error {
	rows, err := r.pool.Query(ctx, markedSQL)
	if err != nil {
		return err
	}
	jobs, err := pgx.CollectRows(rows, pgx.RowTo[string])
	for _, job := range jobs {
		err = errors.Join(err, r.pauseDead(ctx, job))
	}
	return err
}
