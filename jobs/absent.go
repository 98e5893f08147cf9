package jobs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// ErrRetire is what every [*RetireError] is.
var ErrRetire = errors.New("jobs: too many jobs would be retired")

// RetireError says that an app lacks so many of its stored jobs that it looks like a mistake.
type RetireError struct {
	App    string
	Absent []string // by name
	Known  int      // jobs that the app has stored
}

// Error implements error.
func (e *RetireError) Error() string {
	return fmt.Sprintf("jobs: %d of %d known jobs of app %q are absent and would be retired (%s): pass --allow-retire %d, or set Config.AllowRetire, if intended",
		len(e.Absent), e.Known, e.App, strings.Join(e.Absent, ", "), len(e.Absent))
}

// Is makes the error an [ErrRetire].
func (e *RetireError) Is(target error) bool { return target == ErrRetire }

const (
	// A job whose former name ($2) somebody still has is of a later file than theirs.
	appJobsSQL = `
select job, generation, exists (select from pawl.renames f where f.job = s.job and f.former = any ($2::text[]))
  from pawl.schedules s where app = $1 and retired_at is null order by job`

	byAbsent     = "absent"  // who has retired a job that its app doesn't have any more
	comesBackFor = time.Hour // after it a job that comes back begins anew

	// What its retirement has cancelled is owed again.
	reopenRetiredSQL = `
update pawl.periods p set state = 'open', reason = null, ended_at = null, waits = pawl.waits_for(p.job, p.key, p.scheduled_at, p.origin)
 where p.job = $1 and p.state = 'cancelled' and p.reason = 'retired' and p.ended_at >= $2::timestamptz and p.lock = any ($3::text[]) and p.parent is null`

	retiredLocksSQL = `
select distinct lock from pawl.periods where job = $1 and state = 'cancelled' and reason = 'retired' and ended_at >= $2::timestamptz`
)

// retireAbsent retires the app's stored jobs that are not among ours, which are all that there are.
func (r *Runner) retireAbsent(ctx context.Context, mine map[string]Job, allow int) error {
	rows, err := r.pool.Query(ctx, appJobsSQL, r.cfg.App, slices.Collect(maps.Keys(mine)))
	if err != nil {
		return err
	}
	known := 0
	var absent, stored []string
	var job string
	var generation int64
	var later bool
	_, err = pgx.ForEachRow(rows, []any{&job, &generation, &later}, func() error {
		known++
		stored = append(stored, job)
		if _, ours := mine[job]; !ours && !later && generation <= r.cfg.Generation {
			absent = append(absent, job)
		}
		return nil
	})
	if err != nil {
		return err
	}
	absent = slices.DeleteFunc(absent, func(name string) bool { return isRenamed(name, mine, stored) })
	if n := len(absent); n > allow && n >= 3 && n*10 > known*3 {
		return &RetireError{r.cfg.App, absent, known}
	}
	for _, job := range absent {
		var cancelled int64
		err := pgx.BeginTxFunc(ctx, r.pool, stepwise(), func(tx pgx.Tx) (err error) {
			cancelled, err = retire(ctx, tx, job, byAbsent, r.cfg.Holder, "app "+r.cfg.App+" has it no more")
			return err
		})
		if err != nil {
			return &JobError{Job: job, Err: err}
		}
		r.log.WarnContext(ctx, "job retired: its app has it no more", "job", job, "app", r.cfg.App, "cancelled", cancelled)
	}
	return nil
}

// isRenamed reports whether one of our jobs is about to take that one's place.
func isRenamed(name string, mine map[string]Job, stored []string) bool {
	for _, j := range mine {
		if j.RenameFrom == name && !slices.Contains(stored, j.Name) {
			return true
		}
	}
	return false
}

// comesBack reports whether a job was retired a short while ago only because a replica with another file didn't have it: in
// a rolling deploy that may happen to and fro, and costs no tick.
func (p *planned) comesBack() bool {
	return p.retired() && p.retiredBy == byAbsent && p.now.Sub(*p.retiredAt) < comesBackFor
}

func (r *Runner) reopenRetired(ctx context.Context, tx pgx.Tx, p *planned) error {
	rows, err := tx.Query(ctx, retiredLocksSQL, p.Job, p.retiredAt)
	if err != nil {
		return err
	}
	locks, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(locks) == 0 {
		return err
	}
	var b batch
	b.Queue(laneSQL, locks)
	b.Queue(reopenRetiredSQL, p.Job, p.retiredAt, locks)
	b.Queue(leaveSQL, locks)
	return tx.SendBatch(ctx, &b).Close()
}
