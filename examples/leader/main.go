package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/examples/internal/crew"
)

const brokenEnv = "LEADER_BROKEN"

func main() {
	crew.Main(work)
	var broken bool
	crew.Example{
		Name: "leader",
		Define: func(flags *flag.FlagSet) {
			flags.BoolVar(&broken, "broken", false, "lead without a guard, which the check finds")
		},
		Play: func(ctx context.Context, f crew.Flags) (crew.Report, error) { return play(ctx, f, broken) },
	}.Main()
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

// Right tells whether each step was its leader's to do.
func (r report) Right() bool { return r.OK }

func (r report) String() string {
	verdict := "no step was done by a leader that was succeeded"
	if !r.OK {
		verdict = fmt.Sprintf("WRONG: %d steps of leaders that had a successor", r.OutOfOrder)
	}
	return fmt.Sprintf("%s\n  %d steps in %d terms of office\n  %s", verdict, r.Steps, r.Leaders, r.Faults)
}

const reportSQL = `
select count(*), count(distinct token), count(*) filter (where token < before), count(*) = (select n from loop)
  from (select token, max(token) over (order by n rows between unbounded preceding and 1 preceding) as before from steps) s`

// play elects, kills and pauses leaders, and looks at what they have done.
func play(ctx context.Context, f crew.Flags, broken bool) (r report, err error) {
	p := crew.Play{
		Flags: f, Strikes: 3, Pause: 2 * ttl,
		Create: func(ctx context.Context, pool *pgxpool.Pool) error {
			_, err := pool.Exec(ctx, createSQL)
			return err
		},
		Done: func(context.Context, *pgxpool.Pool) (bool, error) { return true, nil },
		Check: func(ctx context.Context, pool *pgxpool.Pool, f crew.Faults) (crew.Report, error) {
			r.Faults = f
			all := false
			err := pool.QueryRow(ctx, reportSQL).Scan(&r.Steps, &r.Leaders, &r.OutOfOrder, &all)
			r.OK = all && r.OutOfOrder == 0 && r.Leaders > 1
			return r, err
		},
	}
	if broken {
		p.Env = []string{brokenEnv + "=1"}
	}
	return r, p.Run(ctx)
}
