package jobs_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/internal/pgtest"
	"pawl/jobs"
)

// riverActs are what River's page, or a person with psql, can do to its rows.
var riverActs = []string{
	`update pawl.river_job set state = 'cancelled', finalized_at = now()
	  where id = (select id from pawl.river_job where state in ('available', 'scheduled') order by random() limit 1 for update skip locked)`,
	`delete from pawl.river_job where id = (select id from pawl.river_job order by random() limit 1 for update skip locked)`,
	`update pawl.river_job set state = 'available', scheduled_at = now(), finalized_at = null
	  where id = (select id from pawl.river_job where finalized_at is not null order by random() limit 1 for update skip locked)`,
	`update pawl.river_job set metadata = metadata || '{"cancel_attempted_at": "2026-01-01T00:00:00Z"}'
	  where id = (select id from pawl.river_job where state = 'running' order by random() limit 1 for update skip locked)`,
	`update pawl.river_job set state = 'discarded', finalized_at = now()
	  where id = (select id from pawl.river_job where state = 'running' order by random() limit 1 for update skip locked)`,
}

func TestMeddlingWithRiversRowsNeitherLosesNorDoublesAPeriod(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	for _, sql := range []string{`create table done (job text, key text)`, `alter database ` + database(t, pool) + ` set pawl.start_grace = '1 s'`} {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	var js []jobs.Job
	for i := range 4 {
		js = append(js, jobs.Job{
			Name: fmt.Sprintf("j%d", i), Schedule: "@every 1h", Start: time.Now().Truncate(time.Hour).Add(-20 * time.Hour), CatchUp: "all",
			Func: func(ctx context.Context, run *jobs.Run) error {
				_, err := pool.Exec(ctx, `insert into done select $1, $2 from pg_sleep(0.03)`, run.Job, run.Period.Key)
				return err
			},
		})
	}
	start(t, jobs.Config{Pool: pool}, js...)
	start(t, jobs.Config{Pool: pool}, js...)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	pgtest.Eventually(t, time.Minute, "all periods are complete while River's rows are meddled with", func() bool {
		for range 3 {
			if _, err := pool.Exec(t.Context(), riverActs[r.IntN(len(riverActs))]); err != nil {
				t.Fatal(err)
			}
		}
		return count(t, pool, `select count(*) from pawl.periods where state = 'complete'`) == 80
	})
	if n := count(t, pool, `select count(*) from done`); n != 80 {
		t.Errorf("%d runs for 80 periods", n)
	}
}

func database(t *testing.T, pool *pgxpool.Pool) (name string) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), `select current_database()`).Scan(&name); err != nil {
		t.Fatal(err)
	}
	return name
}

// A period that nobody has advanced, as after a process that died between two statements of somebody else's.
func TestARunnersBackstopFindsWorkWithoutADelivery(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	start(t, jobs.Config{Pool: pool}, jobs.Job{Name: "settle", Schedule: "@manual", Func: nothing})
	until(t, pool, 1, `select count(*) from pawl.schedules`)
	if _, err := pool.Exec(t.Context(), `insert into pawl.periods (job, key, lock, start_at, end_at, scheduled_at)
	  values ('settle', 'x', 'job:settle', now(), now(), now())`); err != nil {
		t.Fatal(err)
	}
	until(t, pool, 1, completeSQL, "settle")
}
