package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"pawl/jobs/alert"
)

const (
	watchEvery = 5 * time.Second
	lookEvery  = 6 // turns: the look at all locks reads them all

	// Looking back is bounded, and begins with more than what came while all replicas were away.
	lookBack      = 10 * time.Minute
	lookBackFirst = 7 * 24 * time.Hour
	settled       = time.Minute // since the start: then what was left behind has been swept, and other replicas are back
)

// Events that a transition makes (dead, missed, uncertain, and the end of a timeout) are noted by triggers, in its
// transaction. The others are found by whichever replica looks first: the unique key makes one of all their finds.
const (
	eventSQL = `
insert into pawl.events (kind, subject, app, job, period, revision, run, lock, token, detail)
`
	onceSQL = `
on conflict (subject, kind) do nothing`

	aliveSQL = `
insert into pawl.replicas (holder, app, jobs) values ($1, $2, coalesce($3::text[], '{}'))
on conflict (holder) do update set app = excluded.app, jobs = excluded.jobs, seen_at = clock_timestamp()`

	// One for each job, of the first that hasn't started: what waits behind it is late for that reason.
	lateSQL = eventSQL + `
select distinct on (p.job) 'late', concat_ws('/', p.job, p.key, p.revision), s.app, p.job, p.key, p.revision, null::uuid, p.lock, null::bigint,
       jsonb_strip_nulls(jsonb_build_object('scheduled_at', p.scheduled_at, 'late_at', p.late_at, 'waits', p.waits,
         'behind', count(*) over (partition by p.job) - 1))
  from pawl.periods p left join pawl.schedules s on s.job = p.job
 where p.late_at is not null and p.ended_at is null and p.late_at <= (select clock_timestamp()) and p.state = 'open' and p.started_at is null
   and p.origin in ('schedule', 'trigger') and p.waits is distinct from 'paused'
 order by p.job, p.scheduled_at, p.key` + onceSQL

	// Also what is dead or held by then. Backfills are owed for the past: they have no such hour.
	overdueSQL = eventSQL + `
select 'overdue', concat_ws('/', p.job, p.key, p.revision), s.app, p.job, p.key, p.revision, p.run, p.lock, p.token,
       jsonb_strip_nulls(jsonb_build_object('due_at', p.due_at, 'scheduled_at', p.scheduled_at, 'started_at', p.started_at, 'state', p.state,
         'waits', p.waits))
  from pawl.periods p left join pawl.schedules s on s.job = p.job
 where p.due_at <= (select clock_timestamp()) and p.due_at > (select clock_timestamp() - interval '35 days')
   and p.state in ('open', 'running', 'dead', 'held') and p.origin in ('schedule', 'trigger')` + onceSQL

	atRiskSQL = eventSQL + `
select 'at_risk', concat_ws('/', p.job, p.key, p.revision), s.app, p.job, p.key, p.revision, p.run, p.lock, p.token,
       jsonb_build_object('due_at', p.due_at, 'started_at', p.started_at, 'expected_at', p.started_at + m.usual,
         'usual_seconds', round(extract(epoch from m.usual)))
  from pawl.periods p left join pawl.schedules s on s.job = p.job
 cross join lateral (
   select percentile_cont(0.5) within group (order by c.took) as usual
     from (select c.ended_at - c.started_at as took from pawl.periods c
            where c.job = p.job and c.state = 'complete' and c.started_at is not null order by c.scheduled_at desc limit 20) c) m
 where p.due_at > (select clock_timestamp()) and p.state = 'running' and p.started_at + m.usual > p.due_at` + onceSQL

	// $1 how far back, in seconds.
	staleClaimSQL = eventSQL + `
select 'stale_claim', concat_ws('/', t.lock, t.token), s.app, r.job, r.key, r.revision, r.id, t.lock, t.token,
       jsonb_strip_nulls(jsonb_build_object('holder', t.holder, 'acquired_at', t.acquired_at, 'expired_at', t.ended_at))
  from pawl.tenures t left join pawl.runs r on r.id = t.grant_id left join pawl.schedules s on s.job = r.job
 where t.how in ('expired', 'taken_over') and t.ended_at > (select clock_timestamp() - $1 * interval '1 s')` + onceSQL

	staleLockSQL = eventSQL + `
select 'stale_claim', concat_ws('/', l.name, l.token), s.app, r.job, r.key, r.revision, r.id, l.name, l.token,
       jsonb_strip_nulls(jsonb_build_object('holder', l.holder, 'acquired_at', l.acquired_at, 'expired_at', l.expires_at))
  from pawl.locks l left join pawl.runs r on r.id = l.grant_id left join pawl.schedules s on s.job = r.job
 where l.grant_id is not null and l.expires_at between (select clock_timestamp() - $1 * interval '1 s') and (select clock_timestamp() - interval '1 s')` + onceSQL

	// The first of each token: an old holder that goes on trying is one event.
	refusalSQL = eventSQL + `
select distinct on (f.lock, f.token) 'refusal', concat_ws('/', f.lock, f.token), s.app, r.job, r.key, r.revision, r.id, f.lock, f.token,
       jsonb_strip_nulls(jsonb_build_object('holder', f.holder, 'current', f.current, 'target', nullif(f.target, ''), 'statement', f.statement,
         'refused_at', f.at, 'late_seconds', extract(epoch from f.late_by)))
  from pawl.refusals f
  left join pawl.tenures t on t.lock = f.lock and t.token = f.token
  left join pawl.locks l on l.name = f.lock and l.token = f.token
  left join pawl.runs r on r.id = coalesce(t.grant_id, l.grant_id)
  left join pawl.schedules s on s.job = r.job
 where f.at > (select clock_timestamp() - $1 * interval '1 s') and not f.passed
 order by f.lock, f.token, f.id` + onceSQL

	unclaimedSQL = eventSQL + `
select 'unclaimed', concat_ws('/', j.args ->> 'job', coalesce(concat_ws('/', h.key, h.revision), j.id::text)), s.app, j.args ->> 'job', h.key, h.revision,
       null::uuid, j.args ->> 'lock', null::bigint, jsonb_build_object('due_at', j.scheduled_at)
  from pawl.river_job j left join pawl.schedules s on s.job = j.args ->> 'job'
  left join lateral (select nullif(p.key, '') as key, p.revision from pawl.periods p
     where p.lock = j.args ->> 'lock' and p.job = j.args ->> 'job' and p.ended_at is null and p.waits is null and p.state = 'open'
     order by p.priority, p.scheduled_at, p.job, p.key, p.revision limit 1) h on true
 where j.queue = 'pawl' and j.state = 'available' and j.scheduled_at < (select clock_timestamp() - interval '1 min')
   and not exists (select from pawl.replicas a where a.seen_at > (select clock_timestamp() - interval '30 s') and j.args ->> 'job' = any (a.jobs))` + onceSQL

	noteSQL = eventSQL + `
select $1::text, $2::text, (select s.app from pawl.schedules s where s.job = $3), $3::text, $4::text, $5::int, $6::text::uuid, $7::text, $8::bigint,
       $9::text::jsonb` + onceSQL
)

// watcher is what one replica remembers of its looks.
type watcher struct {
	begun time.Time
	turns int
}

// watch says that this replica lives and looks for events that no transition makes.
func (r *Runner) watch(ctx context.Context, w *watcher) error {
	names := r.handled().names
	back := lookBack
	fresh := time.Since(w.begun) < settled
	if fresh {
		back = lookBackFirst
	}
	type look struct {
		sql  string
		args []any
	}
	looks := []look{
		{aliveSQL, []any{r.cfg.Holder, r.cfg.App, names}},
		{lateSQL, nil},
		{overdueSQL, nil},
		{atRiskSQL, nil},
		{staleClaimSQL, []any{back.Seconds()}},
		{refusalSQL, []any{back.Seconds()}},
	}
	if !fresh {
		looks = append(looks, look{unclaimedSQL, nil})
	}
	var errs []error
	if w.turns%lookEvery == 0 {
		var b batch
		b.Queue(`set local enable_seqscan = on`) // which the plan keeps: all of it is read
		b.Queue(staleLockSQL, back.Seconds())
		errs = append(errs, r.transact(ctx, &b))
	}
	w.turns++
	for _, q := range looks { // each on its own: one that fails doesn't hide the others
		if _, err := r.pool.Exec(ctx, q.sql, q.args...); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// note notes what only this process knows of a run. That it isn't noted is said in the log: the run goes on.
func (r *Runner) note(ctx context.Context, run *Run, kind, subject string, detail map[string]any) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	text, err := json.Marshal(detail)
	if err == nil {
		_, err = r.pool.Exec(ctx, noteSQL, kind, subject, run.Job, run.rowKey(), run.Revision, run.ID.String(), run.token.Lock, run.token.Seq, string(text))
	}
	if err != nil {
		run.Logger().WarnContext(ctx, "event not noted", "event", kind, "error", err)
	}
}

func (r *Runner) noteStuck(ctx context.Context, run *Run, cause error) {
	r.note(ctx, run, alert.Stuck, run.ID.String(), map[string]any{"holder": r.cfg.Holder, "cause": storable(cause.Error())})
}

// warnOfTimeout notes when a run has used four fifths of its timeout. Call stop when it has ended.
func (r *Runner) warnOfTimeout(ctx context.Context, run *Run) (stop func()) {
	t := time.AfterFunc(run.job.Timeout/5*4, func() {
		r.note(ctx, run, alert.Timeout, run.ID.String()+"/near", map[string]any{
			"attempt": run.Attempt, "started_at": run.lease.AcquiredAt, "timeout": run.job.Timeout.String(),
		})
	})
	return func() { t.Stop() }
}
