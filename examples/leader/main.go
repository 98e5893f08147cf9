package main

import (
	"context"
	"log/slog"
	"os"

	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/examples/internal/crew"
)

const brokenEnv = "LEADER_BROKEN"

func main() {
	crew.Main(work)
	crew.Command(func(ctx context.Context, f crew.Flags, log *slog.Logger) (any, bool, error) {
		r, err := play(ctx, f.Seed, f.Broken, log)
		return r, r.OK, err
	})
}

func work(ctx context.Context, pool *pgxpool.Pool, name string) error {
	return lead(ctx, pool, name, os.Getenv(brokenEnv) != "")
}

// report is what a play has come to.
type report struct {
	OK         bool `json:"ok"`
	Steps      int  `json:"steps"`
	Leaders    int  `json:"leaders"`      // terms of office
	OutOfOrder int  `json:"out_of_order"` // steps of a leader that had a successor
	crew.Faults
}

const reportSQL = `
select count(*), count(distinct token), count(*) filter (where token < before), count(*) = (select n from loop)
  from (select token, max(token) over (order by n rows between unbounded preceding and 1 preceding) as before from steps) s`

// play elects, kills and pauses leaders, and looks at what they have done.
func play(ctx context.Context, seed uint64, broken bool, log *slog.Logger) (r report, err error) {
	p := crew.Play{
		Seed: seed, Strikes: 3, Pause: 2 * ttl, Log: log,
		Create: func(ctx context.Context, pool *pgxpool.Pool) error {
			_, err := pool.Exec(ctx, createSQL)
			return err
		},
		Done: func(context.Context, *pgxpool.Pool) (bool, error) { return true, nil },
		Check: func(ctx context.Context, pool *pgxpool.Pool, f crew.Faults) error {
			r.Faults = f
			all := false
			err := pool.QueryRow(ctx, reportSQL).Scan(&r.Steps, &r.Leaders, &r.OutOfOrder, &all)
			r.OK = all && r.OutOfOrder == 0 && r.Leaders > 1
			return err
		},
	}
	if broken {
		p.Env = []string{brokenEnv + "=1"}
	}
	return r, p.Run(ctx)
}
