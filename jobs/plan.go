package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"pawl/internal/gather"
	"pawl/jobs/schedule"
)

// maxSkew is how far the database's clock may be from ours: beyond it nothing is planned, since tomorrow's periods
// would run today.
const maxSkew = 5 * time.Minute

const (
	peekSQL = `
select clock_timestamp(), exists (select from pawl.schedules where retired_at is null and next_at <= clock_timestamp())`

	dueSQL = `
select job, app, lock, definition, watermark, clock_timestamp(), false from pawl.schedules
 where retired_at is null and next_at <= clock_timestamp() and job > $1 order by job limit $2 for update skip locked`

	mostDue = 100 // schedules in one transaction
)

// planned is one schedule row, as it was locked.
type planned struct {
	definition
	stored         []byte
	unreadable     error // why stored isn't a definition: another version's, perhaps
	watermark, now time.Time
	next           *time.Time
	retired        bool
	ticks          []schedule.Tick
	runs           int
}

// plan turns due ticks into periods: as often as there is something due.
func (r *Runner) plan(ctx context.Context) error {
	after := "" // up to here nothing that is due can be planned
	for {
		var now time.Time
		var due bool
		if err := r.pool.QueryRow(ctx, peekSQL).Scan(&now, &due); err != nil {
			return err
		}
		if skew := r.clock().Sub(now).Abs(); skew > maxSkew {
			return fmt.Errorf("jobs: the database's clock (%s) and ours differ by %s, more than %s: nothing is planned; set the clocks right",
				now.UTC().Format(time.RFC3339), skew.Round(time.Second), maxSkew)
		}
		if !due {
			return nil
		}
		n, last, err := r.planDue(ctx, after, mostDue)
		switch {
		case gather.Refused(err):
			return r.planEach(ctx)
		case err != nil:
			return err
		case n == 0 && last == "":
			return nil
		case n == 0:
			after = last
		}
	}
}

// planEach plans schedule by schedule: one that fails, or waits for its lane, must not stop the others.
func (r *Runner) planEach(ctx context.Context) error {
	var errs []error
	for after := ""; ; {
		_, last, err := r.planDue(ctx, after, 1)
		if err != nil {
			errs = append(errs, fmt.Errorf("jobs: plan %q: %w", last, err))
		}
		if last == "" || err != nil && !gather.Refused(err) {
			return errors.Join(errs...)
		}
		after = last
	}
}

// planDue plans due schedules that no other replica is planning, those after a name, in one transaction. It returns
// how many it could plan, and the last name that it has met.
func (r *Runner) planDue(ctx context.Context, after string, most int) (n int, last string, err error) {
	err = pgx.BeginTxFunc(ctx, r.pool, stepwise(), func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, r.lockTimeoutSQL()); err != nil {
			return err
		}
		due, err := dueSchedules(ctx, tx, after, most)
		if err != nil {
			return err
		}
		var ready []*planned
		for _, p := range due {
			last = p.Job
			if err := r.plans.fill(p); err != nil {
				r.plans.once(p.Job, func() { r.log.ErrorContext(ctx, "stored schedule can't be planned", "job", p.Job, "error", err) })
				continue
			}
			ready = append(ready, p)
		}
		n = len(ready)
		return r.writePlan(ctx, tx, ready)
	})
	return n, last, err
}

func dueSchedules(ctx context.Context, tx pgx.Tx, after string, most int) ([]*planned, error) {
	rows, err := tx.Query(ctx, dueSQL, after, most)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanPlanned)
}

func scanPlanned(row pgx.CollectableRow) (*planned, error) {
	var p planned
	var job, app, lock string
	if err := row.Scan(&job, &app, &lock, &p.stored, &p.watermark, &p.now, &p.retired); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(p.stored, &p.definition); err != nil {
		p.unreadable = fmt.Errorf("jobs: stored definition of %s: %w", job, err)
	}
	p.Job, p.App, p.Lock, p.runs = job, app, lock, max(p.Runs, 1)
	return &p, nil
}

func (p *planned) parse() (schedule.Schedule, error) {
	if p.unreadable != nil {
		return schedule.Schedule{}, p.unreadable
	}
	return p.definition.parse()
}

// planCache keeps parsed schedules, by definition.
type planCache struct {
	mu     sync.Mutex
	parsed map[definition]schedule.Schedule
	told   map[string]bool
}

// fill lists the ticks between the watermark and now, and moves both on.
func (c *planCache) fill(p *planned) error {
	if p.unreadable != nil {
		return p.unreadable
	}
	s, err := c.schedule(p.definition)
	if err != nil {
		return err
	}
	policy, err := s.Policy(p.policy())
	if err != nil {
		return err
	}
	p.ticks, p.watermark = s.Ticks(p.watermark, p.now, policy)
	p.next = nextAt(s, p.watermark)
	return nil
}

func (c *planCache) schedule(d definition) (schedule.Schedule, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s, ok := c.parsed[d]; ok {
		return s, nil
	}
	s, err := d.parse()
	if err != nil {
		return s, err
	}
	if c.parsed == nil || len(c.parsed) > 10000 {
		c.parsed = map[definition]schedule.Schedule{}
	}
	c.parsed[d] = s
	return s, nil
}

// once calls f the first time that it is asked for key.
func (c *planCache) once(key string, f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.told == nil {
		c.told = map[string]bool{}
	}
	if !c.told[key] {
		c.told[key] = true
		f()
	}
}

func nextAt(s schedule.Schedule, after time.Time) *time.Time {
	if next := s.Next(after); !next.IsZero() {
		return &next
	}
	return nil
}

// Ticks that are not owed are recorded all the same, with the reason.
const (
	insertPeriodsSQL = `
insert into pawl.periods (job, key, lock, state, reason, start_at, end_at, scheduled_at, last_at, ticks, max_attempts, ended_at)
select p.job, p.key, p.lock, case when p.reason = '' then 'open' else 'missed' end, nullif(p.reason, ''),
       p.start_at, p.end_at, p.at, case when p.ticks > 1 then p.last_at end, p.ticks, p.most,
       case when p.reason <> '' then clock_timestamp() end
  from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::timestamptz[], $6::timestamptz[], $7::timestamptz[], $8::timestamptz[],
              $9::int[], $10::int[]) as p(job, key, lock, reason, start_at, end_at, at, last_at, ticks, most)
 order by p.job, p.key
on conflict (job, key, revision) do nothing
returning job, state, coalesce(reason, '')`

	moveWatermarkSQL = `
update pawl.schedules s set watermark = w.at, next_at = w.next
  from unnest($1::text[], $2::timestamptz[], $3::timestamptz[]) as w(job, at, next) where s.job = w.job`
)

// writePlan inserts the periods, makes the lane rule true and moves the watermarks. The caller holds the schedule rows.
func (r *Runner) writePlan(ctx context.Context, tx pgx.Tx, ps []*planned) error {
	if len(ps) == 0 {
		return nil
	}
	var c periodColumns
	var jobs []string
	var marks []time.Time
	var nexts []*time.Time
	for _, p := range ps {
		jobs, marks, nexts = append(jobs, p.Job), append(marks, p.watermark), append(nexts, p.next)
		for _, t := range p.ticks {
			c.add(p, t)
		}
	}
	var inserted [][3]string
	var b pgx.Batch
	if len(c.locks) > 0 {
		b.Queue(laneSQL, c.locks)
		b.Queue(insertPeriodsSQL, c.args()...).Query(func(rows pgx.Rows) (err error) {
			inserted, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (x [3]string, err error) {
				return x, row.Scan(&x[0], &x[1], &x[2])
			})
			return err
		})
	}
	b.Queue(moveWatermarkSQL, jobs, marks, nexts)
	if len(c.locks) > 0 {
		b.Queue(leaveSQL, c.locks)
	}
	if err := tx.SendBatch(ctx, &b).Close(); err != nil {
		return err
	}
	for _, x := range inserted {
		r.metrics.Periods.WithLabelValues(x[0], x[1], x[2]).Inc()
		if x[1] != "open" {
			r.log.WarnContext(ctx, "ticks will not run", "job", x[0], "state", x[1], "reason", x[2])
		}
	}
	return nil
}

// periodColumns are the new periods, a column each.
type periodColumns struct {
	jobs, keys, locks, reasons []string
	starts, ends, ats, lasts   []time.Time
	ticks, most                []int32
}

func (c *periodColumns) add(p *planned, t schedule.Tick) {
	c.jobs, c.keys, c.locks = append(c.jobs, p.Job), append(c.keys, t.Period.Key), append(c.locks, p.Lock)
	c.reasons = append(c.reasons, t.Reason)
	c.starts, c.ends = append(c.starts, t.Period.Start), append(c.ends, t.Period.End)
	c.ats, c.lasts = append(c.ats, t.At), append(c.lasts, t.To)
	c.ticks, c.most = append(c.ticks, int32(max(t.Count, 1))), append(c.most, int32(p.runs))
}

func (c *periodColumns) args() []any {
	return []any{c.jobs, c.keys, c.locks, c.reasons, c.starts, c.ends, c.ats, c.lasts, c.ticks, c.most}
}

var errOtherApp = errors.New("belongs to another app")
