package jobs

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"pawl/lockrepo"
)

// $1 runs, $2 locks, $3 tokens, $4 new grant ids, $5 holder, $6 our jobs, $7 their TTLs in ms, $8 and $9 progress (-1: none). Completes runs and starts
// each lock's next period in one transaction; the lock is never free between. A run that is missing from the answer
// was left as it is (nothing due, row locked by a leaked guard or by our own beat, refused, not adopted): end it.
// FOR UPDATE, since the token changes: a leaked guarded transaction of the finished run must not commit under the
// next token. SKIP LOCKED, so that nothing can hold it up.
const handoverSQL = `
with k as materialized (select incarnation, floor from pawl.clock where incarnation = pawl.incarnation()
), ours as materialized (
  select c.job, c.ttl * interval '1 ms' as ttl from unnest($6::text[], $7::bigint[]) as c(job, ttl)
), locked as materialized (
  select l.*, r.run::uuid, r.fresh::uuid, nullif(r.done, -1) as done, nullif(r.total, -1) as total, q.job, q.key as period, q.revision, q.delivery
    from unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $8::bigint[], $9::bigint[]) as r(run, lock, token, fresh, done, total)
    join pawl.locks l on l.name = r.lock and l.token = r.token and l.grant_id = r.run::uuid
    join pawl.runs q on q.id = r.run::uuid and q.ended_at is null
   where l.name = any ($2::text[]) and q.id = any ($1::text[]::uuid[])
     for update of l skip locked
), next as materialized (
  select v.name, p.job, p.key, p.revision, o.ttl
    from locked v
    join pawl.periods m on m.job = v.job and m.key = v.period and m.revision = v.revision and m.run = v.run and m.state = 'running'
   cross join lateral (
      select * from pawl.periods p where p.lock = v.name and p.ended_at is null and p.state = 'open'
       order by p.scheduled_at, p.job, p.key, p.revision limit 1) p
    join ours o on o.job = p.job
   where v.expires_at > clock_timestamp() and (p.not_before is null or p.not_before <= clock_timestamp())
), moved as (
  update pawl.locks l
     set token = pawl.next_token(v.token, v.incarnation = k.incarnation, k.floor), incarnation = k.incarnation,
         grant_id = v.fresh, holder = $5, ttl = n.ttl, beats = 0, longest_gap = '0',
         acquired_at = clock_timestamp(), renewed_at = clock_timestamp(), expires_at = clock_timestamp() + n.ttl
    from locked v join next n on n.name = v.name cross join k where l.name = v.name and l.name = any ($2::text[])
  returning l.name, l.token, l.acquired_at, l.expires_at
), done as (
  update pawl.periods p set state = 'complete', reason = null, ended_at = clock_timestamp()
    from locked v join moved m on m.name = v.name
   where p.job = v.job and p.key = v.period and p.revision = v.revision
), ended as (
  update pawl.runs r set state = 'complete', ended_at = clock_timestamp(), done = v.done, total = v.total
    from locked v join moved m on m.name = v.name where r.id = v.run and r.id = any ($1::text[]::uuid[])
  returning v.name, v.fresh, v.delivery, m.token
), begun as (
  update pawl.periods p
     set state = 'running', run = e.fresh, token = e.token, attempts = p.attempts + 1, not_before = null,
         reason = null, started_at = clock_timestamp()
    from next n join ended e on e.name = n.name where p.job = n.job and p.key = n.key and p.revision = n.revision
  returning p.*
), run as (
  insert into pawl.runs (id, job, key, revision, attempt, lock, token, holder, delivery, resumed)
  select b.run, b.job, b.key, b.revision, b.attempts, b.lock, b.token, $5, e.delivery,
         exists (select from pawl.checkpoints c where c.job = b.job and c.key = b.key and c.revision = b.revision)
    from begun b join ended e on e.name = b.lock
), history as (
  insert into pawl.tenures (lock, token, grant_id, holder, key, acquired_at, ended_at, how, successor, beats, longest_gap)
  select v.name, v.token, v.grant_id, v.holder, v.key, v.acquired_at, clock_timestamp(), 'released', e.token, v.beats, v.longest_gap
    from locked v join ended e on e.name = v.name
)
select p.lock, ` + runColumns + `, ` + moreColumn + `
  from begun p join moved g on g.name = p.lock
  left join pawl.checkpoints c on c.job = p.job and c.key = p.key and c.revision = p.revision`

// handover completes runs and starts the next period of each lock. Nil: nothing was done for that run, end it.
func (r *Runner) handover(ctx context.Context, runs []*Run) ([]*Run, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	n := len(runs)
	ids, locks, tokens, fresh := make([]string, n), make([]string, n), make([]int64, n), make([]string, n)
	done, total := make([]int64, n), make([]int64, n)
	at := map[string]int{}
	for i, run := range runs {
		done[i], total[i] = run.progress()
		ids[i], locks[i], tokens[i], fresh[i] = run.ID.String(), run.token.Lock, run.token.Seq, uuid.NewString()
		run.heir, at[fresh[i]] = fresh[i], i // not by lock: an old run of the same lock may end in this batch too
	}
	names, ttls := r.handled()
	out := make([]*Run, n)
	sent := lockrepo.Now()
	var b pgx.Batch
	b.Queue(laneSQL, locks)
	b.Queue(handoverSQL, ids, locks, tokens, fresh, r.cfg.Holder, names, ttls, done, total).Query(func(rows pgx.Rows) error {
		var lock string
		var x runRow
		_, err := pgx.ForEachRow(rows, append([]any{&lock}, x.dest()...), func() error {
			i := at[x.id]
			out[i] = r.run(x, lock, runs[i].delivery, sent)
			x.checkpoint = nil
			return nil
		})
		return err
	})
	if err := r.transact(ctx, &b); err != nil {
		return nil, err
	}
	return out, nil
}
