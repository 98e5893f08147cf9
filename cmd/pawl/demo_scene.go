package main

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// scene is what the database says at one moment.
type scene struct {
	periods  []scenePeriod
	runs     []sceneRun // by token
	refusals []sceneRefusal
	inside   map[int64]bool // tokens with an open guarded transaction that waits for its worker
	takeover int            // leases that were taken over
}

type scenePeriod struct {
	Key, State string
}

type sceneRun struct {
	Key       string
	Attempt   int
	State     string
	Token     int64
	Holder    string
	Resumed   bool
	StartedAt time.Time
	EndedAt   *time.Time
	Batch     int // batches that are committed and whose checkpoint is this run's
	Done      int64
	Total     int64
}

type sceneRefusal struct {
	ID        int64
	Token     int64
	Current   int64
	Holder    string
	Late      float64 // seconds
	Statement string
}

const (
	scenePeriodsSQL = `select key, state from pawl.periods where job = 'settlement' order by scheduled_at`

	sceneRunsSQL = `
select r.key, r.attempt, r.state, r.token, coalesce(r.holder, '') as holder, r.resumed, r.started_at, r.ended_at,
       coalesce((c.value ->> 'batch')::int, 0) as batch, coalesce((c.value ->> 'done')::bigint, r.done, 0) as done,
       coalesce((c.value ->> 'total')::bigint, r.total, 0) as total
  from pawl.runs r
  left join pawl.checkpoints c on c.job = r.job and c.key = r.key and c.revision = r.revision and c.token = r.token
 where r.job = 'settlement' order by r.token`

	sceneRefusalsSQL = `
select id, coalesce(token, 0) as token, coalesce(current, 0) as current, coalesce(holder, '') as holder,
       coalesce(extract(epoch from late_by), 0)::float8 as late, coalesce(statement, '') as statement
  from pawl.refusals order by id`

	sceneInsideSQL = `
select substr(application_name, 6)::bigint from pg_stat_activity
 where datname = current_database() and application_name ~ '^pawl [0-9]{1,18}$' and state = 'idle in transaction'`

	sceneTakeoversSQL = `select count(*) from pawl.tenures where how = 'taken_over'`
)

// look asks for everything in one round trip.
func (s *stage) look(ctx context.Context) (now scene, err error) {
	var b pgx.Batch
	collect(&b, scenePeriodsSQL, &now.periods, pgx.RowToStructByName[scenePeriod])
	collect(&b, sceneRunsSQL, &now.runs, pgx.RowToStructByName[sceneRun])
	collect(&b, sceneRefusalsSQL, &now.refusals, pgx.RowToStructByName[sceneRefusal])
	var inside []int64
	collect(&b, sceneInsideSQL, &inside, pgx.RowTo[int64])
	b.Queue(sceneTakeoversSQL).QueryRow(func(row pgx.Row) error { return row.Scan(&now.takeover) })
	if err := s.db.pool.SendBatch(ctx, &b).Close(); err != nil {
		return now, err
	}
	now.inside = map[int64]bool{}
	for _, seq := range inside {
		now.inside[seq] = true
	}
	return now, nil
}

func collect[T any](b *pgx.Batch, sql string, into *[]T, row pgx.RowToFunc[T]) {
	b.Queue(sql).Query(func(rows pgx.Rows) (err error) {
		*into, err = pgx.CollectRows(rows, row)
		return err
	})
}

// progress is how far a run came, as it said itself.
func (r sceneRun) progress() string {
	if r.Total == 0 {
		return "-"
	}
	return thousands(r.Done) + "/" + thousands(r.Total)
}

// complete is how many periods are.
func (n scene) complete() (count int) {
	for _, p := range n.periods {
		if p.State == "complete" {
			count++
		}
	}
	return count
}

// holder is who was granted a token.
func (n scene) holder(seq int64) string {
	for _, r := range n.runs {
		if r.Token == seq {
			return r.Holder
		}
	}
	return "nobody known"
}

// refused says whether a write under a token was turned away.
func (n scene) refused(seq int64) bool {
	for _, r := range n.refusals {
		if r.Token == seq {
			return true
		}
	}
	return false
}
