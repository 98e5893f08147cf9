package jobs

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"pawl/fence"
	"pawl/jobs/schedule"
	"pawl/lockrepo"
)

// What start found.
const (
	outcomeStarted = "started"
	outcomeBusy    = "busy"    // the lock is held by somebody outside
	outcomeNothing = "nothing" // no period of ours may run now
	outcomeAdopt   = "adopt"   // the server has restarted: no token before pawl.adopt
)

type startRequest struct {
	lock     string
	grant    uuid.UUID // the run's id, made before it is asked for: asked again it finds the same run
	delivery int64
}

type started struct {
	outcome string
	run     *Run
}

// $1 locks, $2 grant ids, $3 deliveries, $4 holder, $5 our jobs, $6 their TTLs in ms, $7 busy: how long to wait for a
// lock that is held, in ms, $8 all deliveries that have arrived. Lock rows are taken after the lanes, which is
// allowed because SKIP LOCKED never waits; expired leases are judged after the row is ours. "= any ($1)" keeps a plan that
// was made while a table was small from scanning the whole of it.
const startSQL = `
with k as materialized (select incarnation, floor from pawl.clock where incarnation = pawl.incarnation()
), req as materialized (
  select r.lock, r.grant_id::uuid, r.delivery from unnest($1::text[], $2::text[], $3::bigint[]) as r(lock, grant_id, delivery)
), ours as materialized (
  select c.job, c.ttl * interval '1 ms' as ttl from unnest($5::text[], $6::bigint[]) as c(job, ttl)
), due as materialized (   -- the oldest that may run; one that waits for its retry holds the line
  select r.*, p.job, p.key, p.revision, o.ttl
    from req r cross join lateral (
      select * from pawl.periods p where p.lock = r.lock and p.ended_at is null and p.state = 'open'
       order by p.scheduled_at, p.job, p.key, p.revision limit 1) p
    join ours o on o.job = p.job
   where (p.not_before is null or p.not_before <= clock_timestamp())
     and not exists (select from pawl.runs x where x.lock = r.lock and x.ended_at is null)
), cur as materialized (select l.* from due d join pawl.locks l on l.name = d.lock where l.name = any ($1::text[])
), locked as materialized (
  select l.* from cur c join pawl.locks l on l.name = c.name
   where l.name = any ($1::text[]) and (c.grant_id is null or c.expires_at <= clock_timestamp()) and exists (select from k)
     for update of l skip locked
), free as materialized (select * from locked where grant_id is null or expires_at <= clock_timestamp()
), taken as (
  update pawl.locks l
     set token = pawl.next_token(f.token, f.incarnation = k.incarnation, k.floor), incarnation = k.incarnation,
         grant_id = d.grant_id, holder = $4, key = null, ttl = d.ttl, beats = 0, longest_gap = '0',
         acquired_at = clock_timestamp(), renewed_at = clock_timestamp(), expires_at = clock_timestamp() + d.ttl
    from free f join due d on d.lock = f.name cross join k where l.name = f.name and l.name = any ($1::text[])
  returning l.name, l.token, l.acquired_at, l.expires_at
), born as (
  insert into pawl.locks as l (name, token, incarnation, grant_id, holder, ttl, acquired_at, renewed_at, expires_at)
  select d.lock, pawl.next_token(null, true, k.floor), k.incarnation, d.grant_id, $4, d.ttl,
         clock_timestamp(), clock_timestamp(), clock_timestamp() + d.ttl
    from due d cross join k
   where case when exists (select from cur c where c.name = d.lock) then false
              else pg_try_advisory_xact_lock(hashtext('pawl.locks'), hashtext(d.lock)) end
  on conflict (name) do nothing returning l.name, l.token, l.acquired_at, l.expires_at
), granted as (select * from taken union all select * from born
), per as (
  update pawl.periods p
     set state = 'running', run = d.grant_id, token = g.token, attempts = p.attempts + 1, not_before = null,
         reason = null, started_at = clock_timestamp()
    from due d join granted g on g.name = d.lock
   where p.job = d.job and p.key = d.key and p.revision = d.revision and p.state = 'open'
  returning p.*
), run as (
  insert into pawl.runs (id, job, key, revision, attempt, lock, token, holder, delivery, resumed)
  select p.run, p.job, p.key, p.revision, p.attempts, p.lock, p.token, $4, d.delivery,
         exists (select from pawl.checkpoints c where c.job = p.job and c.key = p.key and c.revision = p.revision)
    from per p join due d on d.lock = p.lock
), lane as (               -- the delivery has arrived, whatever it found
  update pawl.lanes n
     set delivery = case when n.delivery = any ($8::bigint[]) then null else n.delivery end,
         not_before = case when d.lock is not null and p.lock is null then clock_timestamp() + $7::bigint * interval '1 ms' end
    from req r left join due d on d.lock = r.lock left join per p on p.lock = r.lock where n.lock = r.lock and n.lock = any ($1::text[])
), ended as (
  insert into pawl.tenures (lock, token, grant_id, holder, key, acquired_at, ended_at, how, successor, beats, longest_gap)
  select f.name, f.token, f.grant_id, f.holder, f.key, f.acquired_at, f.expires_at, 'taken_over', t.token, f.beats, f.longest_gap
    from free f join taken t on t.name = f.name where f.grant_id is not null
), heir as (
  update pawl.tenures e set how = case e.how when 'expired' then 'taken_over' else e.how end, successor = t.token
    from free f join taken t on t.name = f.name
   where f.grant_id is null and e.lock = f.name and e.token = f.token and e.how in ('expired', 'forced')
)
select r.lock,
       case when p.lock is not null then 'started' when d.lock is null then 'nothing'
            when exists (select from k) then 'busy' else 'adopt' end,
       ` + runColumns + `, ` + moreColumn + `
  from req r left join due d on d.lock = r.lock left join per p on p.lock = r.lock left join granted g on g.name = p.lock
  left join pawl.checkpoints c on c.job = p.job and c.key = p.key and c.revision = p.revision`

// runColumns are what a run is made of, from the period p, the grant g and the checkpoint c; see scanRun.
const runColumns = `coalesce(p.run::text, ''), coalesce(p.token, 0), coalesce(p.job, ''), coalesce(p.key, ''), coalesce(p.revision, 0),
       coalesce(p.attempts, 0), coalesce(p.max_attempts, 0), p.scheduled_at, p.start_at, p.end_at, g.acquired_at, g.expires_at, c.value`

// moreColumn says whether another period of the lock is open: without one a hand-over isn't worth its round trip. It
// may be wrong by what was planned since; then the end delivers that.
const moreColumn = `
       exists (select from pawl.periods n where n.lock = p.lock and n.ended_at is null and n.state = 'open'
                  and (n.job, n.key, n.revision) <> (p.job, p.key, p.revision))`

// runRow receives runColumns and moreColumn.
type runRow struct {
	id                                 string
	token                              int64
	job, key                           string
	revision, attempt, most            int
	scheduled, start, end, got, expire *time.Time
	checkpoint                         []byte
	more                               bool
}

func (x *runRow) dest() []any {
	return []any{
		&x.id, &x.token, &x.job, &x.key, &x.revision, &x.attempt, &x.most,
		&x.scheduled, &x.start, &x.end, &x.got, &x.expire, &x.checkpoint, &x.more,
	}
}

// run makes the run of a row that has one. sent is when the statement was sent.
func (r *Runner) run(x runRow, lock string, delivery int64, sent lockrepo.Instant) *Run {
	j := r.jobs[x.job]
	id := uuid.MustParse(x.id)
	tok := fence.Token{Lock: lock, Seq: x.token}
	run := &Run{
		ID: id, Job: x.job, Revision: x.revision, Attempt: x.attempt, ScheduledAt: x.scheduled.UTC(),
		Period: schedule.Period{Key: x.key, Start: x.start.UTC(), End: x.end.UTC(), Offset: j.PeriodOffset},
		runner: r, job: j, most: x.most, token: tok, delivery: delivery, checkpoint: x.checkpoint, more: x.more,
	}
	run.lease = r.repo.Granted(tok, id, r.cfg.Holder, j.TTL, sent)
	run.lease.AcquiredAt, run.lease.ExpiresAt = x.got.UTC(), x.expire.UTC()
	return run
}

// start executes the start of several locks in one transaction. Of two requests for one lock the second finds
// nothing.
func (r *Runner) start(ctx context.Context, qs []startRequest) ([]started, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	first, deliveries := oneEach(qs)
	names, ttls := r.handled()
	locks, grants, ids := make([]string, len(first)), make([]string, len(first)), make([]int64, len(first))
	for i, q := range first {
		locks[i], grants[i], ids[i] = q.lock, q.grant.String(), q.delivery
	}
	sent := lockrepo.Now()
	found := map[uuid.UUID]started{}
	var b pgx.Batch
	b.Queue(laneSQL, locks)
	b.Queue(startSQL, locks, grants, ids, r.cfg.Holder, names, ttls, r.busy().Milliseconds(), deliveries).Query(func(rows pgx.Rows) error {
		var lock, outcome string
		var x runRow
		_, err := pgx.ForEachRow(rows, append([]any{&lock, &outcome}, x.dest()...), func() error {
			q := first[slices.IndexFunc(first, func(q startRequest) bool { return q.lock == lock })]
			s := started{outcome: outcome}
			if outcome == outcomeStarted {
				s.run = r.run(x, lock, q.delivery, sent)
			}
			x.checkpoint = nil
			found[q.grant] = s
			return nil
		})
		return err
	})
	b.Queue(leaveSQL, locks)
	if err := r.transact(ctx, &b); err != nil {
		return nil, err
	}
	out := make([]started, len(qs))
	for i, q := range qs {
		s := found[q.grant]
		out[i] = started{cmp.Or(s.outcome, outcomeNothing), s.run}
	}
	return out, nil
}

// oneEach keeps the first request of each lock, by name, and returns all deliveries.
func oneEach(qs []startRequest) (first []startRequest, deliveries []int64) {
	first = slices.Clone(qs)
	slices.SortStableFunc(first, func(a, b startRequest) int {
		return cmp.Or(cmp.Compare(a.lock, b.lock), cmp.Compare(a.delivery, b.delivery))
	})
	for _, q := range first {
		deliveries = append(deliveries, q.delivery)
	}
	return slices.CompactFunc(first, func(a, b startRequest) bool { return a.lock == b.lock }), deliveries
}
