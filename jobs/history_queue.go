package jobs

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	mostQueueJobs = 100
	liveFor       = 30 * time.Second // a replica that was seen then; it says that it lives every few seconds
)

// QueueState is what waits for a worker, from the periods themselves. Counts stop at 10,001.
type QueueState struct {
	Depth     int           `json:"depth"`     // periods that are due and may run, but for the line of their lock and a free slot
	Running   int           `json:"running"`   // runs
	Retrying  int           `json:"retrying"`  // periods that have failed and wait for their next attempt
	Scheduled int           `json:"scheduled"` // periods whose jitter isn't over
	Oldest    time.Duration `json:"oldest_ns"` // for how long the first of those in Depth has been due
	ByJob     []QueueJob    `json:"by_job"`    // the deepest first, at most 100
	Replicas  []Replica     `json:"replicas"`  // the last seen first, at most 1000
}

// QueueJob is one job's part.
type QueueJob struct {
	Job     string        `json:"job"`
	Waiting int           `json:"waiting"` // as Depth
	Running int           `json:"running"`
	Oldest  time.Duration `json:"oldest_ns"`
}

// Replica is a process that runs jobs, as it last said itself.
type Replica struct {
	Holder  string    `json:"holder"`
	App     string    `json:"app"`
	Jobs    []string  `json:"jobs"` // that it has functions for
	SeenAt  time.Time `json:"seen_at"`
	Live    bool      `json:"live"`    // seen within the last 30 seconds
	Running int       `json:"running"` // its runs
}

const (
	// Of each lock at most 10,001 periods are looked at: it runs one at a time, the first of them.
	queueSQL = openLocks + `, n as materialized (select clock_timestamp() as now), p as (
  select p.job, p.state, p.attempts > 0 as again, p.not_before > n.now as later,
         extract(epoch from n.now - greatest(p.scheduled_at, p.not_before)) as age
    from lanes l cross join n cross join lateral (
      select job, state, attempts, not_before, scheduled_at from pawl.periods where lock = l.lock and ` + unfinished + `
       order by priority, scheduled_at, job, key, revision limit @most) p
)
select coalesce(w.job, r.job), coalesce(w.due, 0), coalesce(r.running, 0), coalesce(w.retried, 0), coalesce(w.later, 0), coalesce(w.age, 0)::float8
  from (select job, count(*) filter (where later is not true) as due, count(*) filter (where later and again) as retried,
               count(*) filter (where later and not again) as later, max(greatest(age, 0)) filter (where later is not true) as age
          from p where state = 'open' group by job) w
  full join (select job, count(*) as running from pawl.runs where ended_at is null group by job) r on r.job = w.job
 order by 2 desc, 3 desc, 1`

	replicasSQL = `
select r.holder, r.app, r.jobs, r.seen_at, r.seen_at > clock_timestamp() - @live * interval '1 s', coalesce(n.running, 0)
  from pawl.replicas r left join (select holder, count(*) as running from pawl.runs where ended_at is null group by holder) n on n.holder = r.holder
 order by r.seen_at desc, r.holder limit 1000`
)

// Queue tells what waits and who works. What it reads grows with what is unfinished, not with the history.
func (h *History) Queue(ctx context.Context) (q QueueState, err error) {
	q = QueueState{ByJob: []QueueJob{}, Replicas: []Replica{}}
	args := pgx.NamedArgs{"most": mostCounted, "live": int(liveFor.Seconds())}
	err = h.read(ctx, "queue", func(ctx context.Context, tx pgx.Tx) error {
		rows, err := tx.Query(ctx, queueSQL, args)
		if err != nil {
			return err
		}
		var j QueueJob
		var retrying, scheduled int
		var oldest float64
		_, err = pgx.ForEachRow(rows, []any{&j.Job, &j.Waiting, &j.Running, &retrying, &scheduled, &oldest}, func() error {
			j.Oldest = time.Duration(oldest * float64(time.Second))
			q.Depth, q.Running = min(q.Depth+j.Waiting, mostCounted), min(q.Running+j.Running, mostCounted)
			q.Retrying, q.Scheduled = min(q.Retrying+retrying, mostCounted), min(q.Scheduled+scheduled, mostCounted)
			q.Oldest = max(q.Oldest, j.Oldest)
			if len(q.ByJob) < mostQueueJobs {
				q.ByJob = append(q.ByJob, QueueJob{j.Job, min(j.Waiting, mostCounted), min(j.Running, mostCounted), j.Oldest})
			}
			return nil
		})
		if err != nil {
			return err
		}
		if rows, err = tx.Query(ctx, replicasSQL, args); err != nil {
			return err
		}
		q.Replicas, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (r Replica, err error) {
			err = row.Scan(&r.Holder, &r.App, &r.Jobs, &r.SeenAt, &r.Live, &r.Running)
			utc(&r.SeenAt)
			return r, err
		})
		return err
	})
	return q, err
}
