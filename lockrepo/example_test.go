package lockrepo_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/fence"
	"pawl/lockrepo"
)

// One process at a time writes the report; an old holder's late write fails.
func ExampleRepo_Hold() {
	report := func(ctx context.Context, pool *pgxpool.Pool) error {
		repo, err := lockrepo.New(lockrepo.Config{Pool: pool})
		if err != nil {
			return err
		}
		defer repo.Close()
		err = repo.Hold(ctx, "report:acme:2026-09", func(ctx context.Context, l lockrepo.Lease) error {
			return fence.Do(ctx, pool, l.Token, func(tx pgx.Tx) error {
				_, err := tx.Exec(ctx, "insert into reports (client, month) values ('acme', '2026-09')")
				return err
			})
		})
		if errors.Is(err, lockrepo.ErrHeld) {
			fmt.Println(err) // somebody else is at it, and says who
			return nil
		}
		return err
	}
	_ = report
}
