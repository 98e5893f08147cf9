package settlement

import (
	"cmp"
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"pawl/jobs"
	"pawl/jobs/schedule"
)

// Config says where the tables are and how much is done at a time.
type Config struct {
	// Schema holds the tables. Empty: pawl_demo.
	Schema string
	// Batch is how many merchants are settled in one transaction. 0: 20.
	Batch int
	// Shards, when set, parts a day's merchants among so many workers. Their
	// control totals are compared when all are done.
	Shards int
	// Pause, when set, is called before each batch, with no transaction open.
	// Batches count from 1 within a day, over all of its runs. An error ends
	// the run.
	Pause func(ctx context.Context, batch int) error
	// Inside, when set, is called in each batch's transaction, with its rows
	// and its checkpoint written and nothing committed. An error rolls back.
	Inside func(ctx context.Context, batch int) error
}

// Settlement settles the payments in one schema. Its methods may be called
// concurrently.
type Settlement struct {
	cfg    Config
	schema string // quoted
}

// New makes a Settlement. It connects to nothing; Create makes the tables.
func New(cfg Config) *Settlement {
	cfg.Schema = cmp.Or(cfg.Schema, "pawl_demo")
	cfg.Batch = cmp.Or(max(cfg.Batch, 0), 20)
	return &Settlement{cfg: cfg, schema: pgx.Identifier{cfg.Schema}.Sanitize()}
}

// Job is the settlement with the default Config.
func Job() jobs.Job { return New(Config{}).Job() }

// Job settles each day as soon as it is over, in UTC. The caller may change
// the copy that it gets: the schedule, the lease, the retries.
func (s *Settlement) Job() jobs.Job {
	j := jobs.Job{
		Name:         "settlement",
		Schedule:     "0 0 * * *",
		Timezone:     "UTC",
		Period:       schedule.Day,
		PeriodOffset: -1,
		Func: func(ctx context.Context, r *jobs.Run) error {
			return s.settle(ctx, r, newDay(r.Period.Start, r.Period.End, r.ID).part(r.Shard))
		},
	}
	if s.cfg.Shards > 0 {
		j.Shards = s.cfg.Shards
		j.Reduce = func(ctx context.Context, r *jobs.Run, tx pgx.Tx) error {
			return s.control(ctx, tx, r.Logger(), newDay(r.Period.Start, r.Period.End, r.ID))
		}
	}
	return j
}

// sql puts the schema's quoted name into a statement, for each $schema.
func (s *Settlement) sql(statement string) string {
	return strings.ReplaceAll(statement, "$schema", s.schema)
}
