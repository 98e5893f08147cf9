package jobs

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// What becomes of a run.
const (
	stateComplete  = "complete"
	stateFailed    = "failed"
	stateTimedOut  = "timed_out"
	stateLost      = "lost"
	stateDrained   = "drained"
	stateCancelled = "cancelled"
)

type endRequest struct {
	run     *Run
	outcome string
	retry   time.Duration // how long the period waits before its next run
	err     string
}

// $1 runs (= grant ids), $2 locks, $3 tokens, $4 outcomes, $5 retry after in ms, $6 errors, $7 strict: raise PW002
// instead of answering false, $8 and $9 progress (-1: none). NO KEY UPDATE: waits for a beat, passes guards. The lanes are those of all requests,
// refused ones too: advance may not enter a lane that the transaction doesn't hold.
const endSQL = `
with req as materialized (
  select r.run::uuid, r.lock, r.token, r.outcome, r.retry * interval '1 ms' as retry, nullif(r.error, '') as error,
         nullif(r.done, -1) as done, nullif(r.total, -1) as total
    from unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::bigint[], $6::text[], $8::bigint[], $9::bigint[])
      as r(run, lock, token, outcome, retry, error, done, total)
), locked as materialized (
  select r.*, l.holder, l.key, l.acquired_at, l.expires_at, l.beats, l.longest_gap
    from req r join pawl.locks l on l.name = r.lock and l.token = r.token and l.grant_id = r.run
   where l.name = any ($2::text[]) order by l.name for no key update of l
), live as materialized (select * from locked where expires_at > clock_timestamp()
), lane as materialized (
  select pawl.lane($2::text[]) as ok from (select count(*) from live) after_the_locks
), done as (
  update pawl.periods p
     set state = pawl.after(v.outcome, p.attempts, p.max_attempts),
         reason = case when v.outcome <> 'complete' then v.outcome end,
         ended_at = case when pawl.after(v.outcome, p.attempts, p.max_attempts) <> 'open' then coalesce(p.ended_at, clock_timestamp()) end,
         attempts = p.attempts - (v.outcome = 'drained')::int,
         not_before = case when v.retry > interval '0' then clock_timestamp() + v.retry end
    from live v join pawl.runs r on r.id = v.run cross join lane
   where r.id = any ($1::text[]::uuid[]) and lane.ok and p.job = r.job and p.key = r.key and p.revision = r.revision and p.run = v.run
     and (p.state = 'running' or p.state = 'complete' and v.outcome = 'complete')
  returning p.run
), run as (
  update pawl.runs r set state = v.outcome, error = v.error, ended_at = clock_timestamp(), done = v.done, total = v.total
    from done d join live v on v.run = d.run where r.id = d.run and r.id = any ($1::text[]::uuid[]) and r.ended_at is null returning r.id
), freed as (
  update pawl.locks l set grant_id = null, holder = null, key = null, expires_at = null, renewed_at = clock_timestamp()
    from live v join run on run.id = v.run where l.name = v.lock and l.name = any ($2::text[])
), ended as (
  insert into pawl.tenures (lock, token, grant_id, holder, key, acquired_at, ended_at, how, beats, longest_gap)
  select v.lock, v.token, v.run, v.holder, v.key, v.acquired_at, clock_timestamp(), 'released', v.beats, v.longest_gap
    from live v join run on run.id = v.run
)
select r.run::text, run.id is not null, pawl.must(not $7::bool or run.id is not null, 'PW002')
  from req r left join run on run.id = r.run`

func endBatch(qs []endRequest, strict bool, ended func(run uuid.UUID, ok bool)) *pgx.Batch {
	n := len(qs)
	runs, locks, tokens := make([]string, n), make([]string, n), make([]int64, n)
	outcomes, retries, errs := make([]string, n), make([]int64, n), make([]string, n)
	done, total := make([]int64, n), make([]int64, n)
	for i, q := range qs {
		done[i], total[i] = q.run.progress()
		runs[i], locks[i], tokens[i] = q.run.ID.String(), q.run.token.Lock, q.run.token.Seq
		outcomes[i], retries[i], errs[i] = q.outcome, q.retry.Milliseconds(), q.err
	}
	var b pgx.Batch
	b.Queue(endSQL, runs, locks, tokens, outcomes, retries, errs, strict, done, total).Query(func(rows pgx.Rows) error {
		var run string
		var ok, must bool
		_, err := pgx.ForEachRow(rows, []any{&run, &ok, &must}, func() error { ended(uuid.MustParse(run), ok); return nil })
		return err
	})
	b.Queue(leaveSQL, locks)
	return &b
}

// end executes the ends of several runs in one transaction. False: the lease was not live any more; the sweep ends
// that run.
func (r *Runner) end(ctx context.Context, qs []endRequest) ([]bool, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	good := map[uuid.UUID]bool{}
	err := r.transact(ctx, endBatch(qs, false, func(run uuid.UUID, ok bool) { good[run] = ok }))
	if err != nil {
		return nil, err
	}
	out := make([]bool, len(qs))
	for i, q := range qs {
		out[i] = good[q.run.ID]
	}
	return out, nil
}

// FOR UPDATE waits for the end of a transaction whose reply was lost; a plain SELECT can misread.
const askEndSQL = `select state, ended_at is not null from pawl.runs where id = $1::text::uuid for update`

// stateGone is a run that the database doesn't know: its start was lost with a primary that has failed.
const stateGone = "gone"

// ask answers what became of a run whose end had no answer.
func (r *Runner) ask(ctx context.Context, run *Run) (state string, ended bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	err = r.pool.QueryRow(ctx, askEndSQL, run.ID.String()).Scan(&state, &ended)
	if errors.Is(err, pgx.ErrNoRows) {
		return stateGone, true, nil
	}
	return state, ended, err
}
