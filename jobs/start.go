package jobs

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"pawl/fence"
	"pawl/lockrepo"
)

// What start found.
const (
	outcomeStarted = "started"
	outcomeBusy    = "busy"    // the lock is held by somebody outside
	outcomeNothing = "nothing" // no period of ours may run now
	outcomeLate    = "late"    // the oldest period has not started in time
	outcomeAdopt   = "adopt"   // the server has restarted: no token before pawl.adopt
)

type startRequest struct {
	lock     string
	grant    uuid.UUID // the run's id, made before it is asked for: asked again it finds the same run
	delivery int64
}

type started struct {
	outcome string
	run     *Run
}

// pawl.start takes the locks of the oldest periods that may run, one request for each lock, and starts their runs.
const startSQL = `
select lock, outcome, ` + startedColumns + `
  from pawl.start($1::text[], $2::text[]::uuid[], $3::bigint[], $4::text, $5::text[], $6::bigint[], $7::bigint, $8::bigint[], $9::int)`

// startedColumns are what a run is made of, of a pawl.started; see runRow.
const startedColumns = `coalesce(run::text, ''), coalesce(token, 0), coalesce(job, ''), coalesce(key, ''), coalesce(revision, 0),
       coalesce(attempt, 0), coalesce(max_attempts, 0), scheduled_at, start_at, end_at, acquired_at, expires_at, checkpoint, coalesce(more, false), coalesce(fanned, false)`

// runRow receives startedColumns.
type runRow struct {
	id                                 string
	token                              int64
	job, key                           string
	revision, attempt, most            int
	scheduled, start, end, got, expire *time.Time
	checkpoint                         []byte
	more, fanned                       bool
}

func (x *runRow) dest() []any {
	return []any{
		&x.id, &x.token, &x.job, &x.key, &x.revision, &x.attempt, &x.most,
		&x.scheduled, &x.start, &x.end, &x.got, &x.expire, &x.checkpoint, &x.more, &x.fanned,
	}
}

// run makes the run of a row that has one. sent is when the statement was sent.
func (r *Runner) run(have handled, x runRow, lock string, delivery int64, sent lockrepo.Instant) *Run {
	j := have.jobs[x.job]
	id := uuid.MustParse(x.id)
	tok := fence.Token{Lock: lock, Seq: x.token}
	period, shard := place(x, j.PeriodOffset)
	run := &Run{
		ID: id, Job: x.job, Revision: x.revision, Attempt: x.attempt, ScheduledAt: x.scheduled.UTC(), Period: period, Shard: shard,
		runner: r, job: j, most: x.most, token: tok, delivery: delivery, checkpoint: x.checkpoint, more: x.more, reduces: x.fanned,
	}
	run.lease = r.repo.Granted(tok, id, r.cfg.Holder, j.TTL, sent)
	run.lease.AcquiredAt, run.lease.ExpiresAt = x.got.UTC(), x.expire.UTC()
	return run
}

// start executes the start of several locks in one transaction. Of two requests for one lock the second finds
// nothing.
func (r *Runner) start(ctx context.Context, qs []startRequest) ([]started, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	first, deliveries := oneEach(qs)
	have := r.handled()
	locks, grants, ids := make([]string, len(first)), make([]string, len(first)), make([]int64, len(first))
	for i, q := range first {
		locks[i], grants[i], ids[i] = q.lock, q.grant.String(), q.delivery
	}
	sent := lockrepo.Now()
	found := map[uuid.UUID]started{}
	err := r.statement(ctx, startSQL, []any{locks, grants, ids, r.cfg.Holder, have.names, have.ttls, r.busy().Milliseconds(), deliveries, r.mostWait.Milliseconds()},
		func(rows pgx.Rows) error {
			var lock, outcome string
			var x runRow
			_, err := pgx.ForEachRow(rows, append([]any{&lock, &outcome}, x.dest()...), func() error {
				q := first[slices.IndexFunc(first, func(q startRequest) bool { return q.lock == lock })]
				s := started{outcome: outcome}
				if outcome == outcomeStarted {
					s.run = r.run(have, x, lock, q.delivery, sent)
				}
				x.checkpoint = nil
				found[q.grant] = s
				return nil
			})
			return err
		})
	if err != nil {
		return nil, err
	}
	out := make([]started, len(qs))
	for i, q := range qs {
		s := found[q.grant]
		out[i] = started{cmp.Or(s.outcome, outcomeNothing), s.run}
	}
	return out, nil
}

// oneEach keeps the first request of each lock, by name, and returns all deliveries.
func oneEach(qs []startRequest) (first []startRequest, deliveries []int64) {
	first = slices.Clone(qs)
	slices.SortStableFunc(first, func(a, b startRequest) int {
		return cmp.Or(cmp.Compare(a.lock, b.lock), cmp.Compare(a.delivery, b.delivery))
	})
	for _, q := range first {
		deliveries = append(deliveries, q.delivery)
	}
	return slices.CompactFunc(first, func(a, b startRequest) bool { return a.lock == b.lock }), deliveries
}
