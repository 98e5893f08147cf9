package kinds

import (
	"context"

	"github.com/jackc/pgx/v5"

	"pawl/jobs"
)

// Reduce is the SQL that completes a period whose shards are all complete: its statements, the guard, the expectation and the
// completion are one commit, as in an [SQL] of [Single]. Text is required.
type Reduce struct {
	Text   string
	Args   []any // $1, $2, …: a Text, or a value as it is
	Expect Rows  // how many rows the last statement touches or returns
}

// Func returns the job's reduction, or a [*ConfigError].
func (r Reduce) Func() (jobs.Reduce, error) {
	w := sqlWork{SQL: SQL{Text: r.Text, Args: r.Args, Transaction: Single, Expect: r.Expect}, statements: split(r.Text)}
	if err := w.check(w.statements); err != nil {
		return nil, err
	}
	return func(ctx context.Context, run *jobs.Run, tx pgx.Tx) error {
		rec := newRecorder(Capture{Max: 1 << 20}, nil, nil)
		err := w.all(ctx, run, tx, bound(w.Args, run), rec)
		if err != nil {
			keep(ctx, run, rec.output())
		}
		return err
	}, nil
}
