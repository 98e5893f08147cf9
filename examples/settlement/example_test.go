package settlement_test

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/examples/settlement"
	"pawl/jobs"
)

// The README's program, whole. It needs a database and a runner, so it is compiled only.
func Example() {
	ctx := context.Background()
	work := func(pool *pgxpool.Pool, runner *jobs.Runner) error {
		s := settlement.New(settlement.Config{}) // schema pawl_demo, 20 merchants a batch
		if err := s.Create(ctx, pool); err != nil {
			return err
		}
		if err := s.Generate(ctx, pool, settlement.Input{Payments: 200_000, Days: 5}); err != nil {
			return err
		}
		if err := runner.Add(s.Job()); err != nil {
			return err
		}
		if err := runner.Run(ctx); err != nil {
			return err
		}
		t, err := s.Totals(ctx, pool)
		fmt.Println(t.OK(), settlement.FormatMinor(t.Currencies["EUR"].Settled, "EUR"))
		return err
	}
	_ = work
}
