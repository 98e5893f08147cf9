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
	stateSkipped   = "skipped"
	stateFinal     = "final"     // failed, and the period with it
	stateUncertain = "uncertain" // the same, and nobody knows
)

type endRequest struct {
	run     *Run
	outcome string
	retry   time.Duration // how long the period waits before its next run
	err     string
}

// pawl.finish ends runs and releases their leases.
const endSQL = `
select run::text, ended
  from pawl.finish($1::text[]::uuid[], $2::text[], $3::bigint[], $4::text[], $5::bigint[], $6::text[], $7::bigint[], $8::bigint[], $9::boolean, $10::int)`

// endArgs are the parameters of endSQL. strict: raise PW002 instead of answering false.
func endArgs(qs []endRequest, strict bool, wait time.Duration) []any {
	n := len(qs)
	runs, locks, tokens := make([]string, n), make([]string, n), make([]int64, n)
	outcomes, retries, errs := make([]string, n), make([]int64, n), make([]string, n)
	done, total := make([]int64, n), make([]int64, n)
	for i, q := range qs {
		done[i], total[i] = q.run.progress()
		runs[i], locks[i], tokens[i] = q.run.ID.String(), q.run.token.Lock, q.run.token.Seq
		outcomes[i], retries[i], errs[i] = q.outcome, q.retry.Milliseconds(), q.err
	}
	return []any{runs, locks, tokens, outcomes, retries, errs, done, total, strict, wait.Milliseconds()}
}

// endBatch is the end of runs inside a transaction that is under way.
func endBatch(qs []endRequest, strict bool, wait time.Duration, ended func(run uuid.UUID, ok bool)) *pgx.Batch {
	var b pgx.Batch
	b.Queue(endSQL, endArgs(qs, strict, wait)...).Query(readEnds(ended))
	return &b
}

func readEnds(ended func(run uuid.UUID, ok bool)) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		var run string
		var ok bool
		_, err := pgx.ForEachRow(rows, []any{&run, &ok}, func() error { ended(uuid.MustParse(run), ok); return nil })
		return err
	}
}

// end executes the ends of several runs in one transaction. False: the lease was not live any more; the sweep ends
// that run.
func (r *Runner) end(ctx context.Context, qs []endRequest) ([]bool, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	good := map[uuid.UUID]bool{}
	err := r.statement(ctx, endSQL, endArgs(qs, false, r.mostWait), readEnds(func(run uuid.UUID, ok bool) { good[run] = ok }))
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
