package jobs

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"pawl/lockrepo"
)

// pawl.handover completes runs and starts the next period of each lock, which is never free between. A run that is missing
// from the answer was left as it is: nothing due, the row locked by a leaked guard or by our own beat, refused, not adopted.
const handoverSQL = `
select lock, ` + startedColumns + `
  from pawl.handover($1::text[]::uuid[], $2::text[], $3::bigint[], $4::text[]::uuid[], $5::text, $6::text[], $7::bigint[], $8::bigint[], $9::bigint[], $10::int)`

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
	have := r.handled()
	out := make([]*Run, n)
	sent := lockrepo.Now()
	args := []any{ids, locks, tokens, fresh, r.cfg.Holder, have.names, have.ttls, done, total, r.mostWait.Milliseconds()}
	err := r.statement(ctx, handoverSQL, args, func(rows pgx.Rows) error {
		var lock string
		var x runRow
		_, err := pgx.ForEachRow(rows, append([]any{&lock}, x.dest()...), func() error {
			i := at[x.id]
			out[i] = r.run(have, x, lock, runs[i].delivery, sent)
			x.checkpoint = nil
			return nil
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}
