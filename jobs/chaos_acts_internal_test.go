package jobs

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"pawl/fence"
	"pawl/internal/pgtest"
	"pawl/lockrepo"
)

// plan is a planner, which may die before its COMMIT.
func (w *weather) plan(x *rand.Rand, planner int) {
	if w.storm.Load() && x.IntN(5) > 0 {
		return
	}
	var c []periodRow
	for range 1 + x.IntN(3) {
		w.add(&c, fmt.Sprint(planner), x.Int64N(w.locks.Load()))
	}
	w.step("plan", func(tx pgx.Tx) error {
		if err := owe(tx, c); err != nil {
			return err
		}
		if x.IntN(10) == 0 {
			return errDied
		}
		return nil
	})
}

func owe(tx pgx.Tx, rows []periodRow) error {
	var b pgx.Batch
	var locks []string
	for _, x := range rows {
		locks = append(locks, x.Lock)
	}
	b.Queue(laneSQL, locks)
	queueOwe(&b, rows, &[]owed{})
	b.Queue(leaveSQL, locks)
	return tx.SendBatch(context.Background(), &b).Close()
}

// add adds a period, which may be late.
func (w *weather) add(c *[]periodRow, planner string, lock int64) {
	at := time.Now().Add(-rand.N(time.Second))
	key := fmt.Sprintf("%s-%d", planner, w.n[nPlanned].Add(1))
	*c = append(*c, periodRow{
		Job: "j", Key: key, Revision: 1, Lock: fmt.Sprint("L", lock), State: stateOpen, Origin: originSchedule,
		StartAt: at, EndAt: at, At: at, LastAt: at, Ticks: 1, Most: 40,
	})
}

// step is a transaction of several round trips.
func (w *weather) step(what string, f func(tx pgx.Tx) error) {
	w.odd(what, pgx.BeginTxFunc(context.Background(), w.r.pool, stepwise(), f))
}

// recover is what every replica does.
func (w *weather) recover(backstop bool) {
	_, err := w.r.sweep(context.Background())
	w.odd("sweep", err)
	if backstop {
		w.odd("backstop", w.r.backstop(context.Background()))
	}
}

// operate holds and resumes: lane, write, advance; or takes the lock itself, as a command would.
func (w *weather) operate(x *rand.Rand) {
	ctx, lock := context.Background(), fmt.Sprint("L", x.Int64N(w.locks.Load()))
	if x.IntN(2) == 0 {
		l, err := w.r.repo.Acquire(ctx, lock, chaosTTL)
		if err == nil {
			w.pass(time.Duration(x.IntN(60)) * time.Millisecond)
			w.odd("release", w.r.repo.Release(ctx, l))
			w.odd("wake", w.r.wake(ctx, lock)) // as the listener would
		} else if !errors.Is(err, lockrepo.ErrHeld) {
			w.odd("acquire", err)
		}
		return
	}
	w.step("operator", func(tx pgx.Tx) error {
		return tx.SendBatch(ctx, laneBatch(lock, func(b *batch) {
			b.Queue(`update pawl.periods set state = case state when 'held' then 'open' else 'held' end, not_before = null where (job, key, revision) in
				(select job, key, revision from pawl.periods where lock = $1 and state in ('held', 'open') order by random() limit 2)`, lock)
		})).Close()
	})
}

const pageWhere = ` where id = (select id from pawl.river_job where state %s order by random() limit 1 for update skip locked)`

var pageSQL = [...]string{
	`update pawl.river_job set state = 'cancelled', finalized_at = now()` + fmt.Sprintf(pageWhere, `= 'available'`),
	`delete from pawl.river_job` + fmt.Sprintf(pageWhere, `<> 'running'`),
	`update pawl.river_job set state = 'available', scheduled_at = clock_timestamp(), finalized_at = null` + fmt.Sprintf(pageWhere, `in ('completed', 'discarded', 'cancelled')`),
}

// page does what a person can do to deliveries on River's page: cancel, delete, retry. At last nothing is retried.
func (w *weather) page(x *rand.Rand) {
	if w.storm.Load() {
		w.n[nPages].Add(1)
		acts := pageSQL[:]
		if w.planned.Load() {
			acts = acts[:2]
		}
		_, err := w.pool.Exec(context.Background(), acts[x.IntN(len(acts))])
		w.odd("River's page", err)
	}
}

// died is a worker that ends without a word.
var errDied = fmt.Errorf("died: %w", fence.ErrNotHeld)

const (
	fetchSQL = `
update pawl.river_job set state = 'running', attempted_at = clock_timestamp() where id = (select id from pawl.river_job
 where state = 'available' and scheduled_at <= clock_timestamp() order by scheduled_at, id limit 1 for update skip locked) returning id, args->>'lock'`
	courierSQL = `update pawl.river_job set state = 'completed', finalized_at = now() where id = $1 and state = 'running'`
)

// work is one delivery.
func (w *weather) work(x *rand.Rand) {
	ctx := context.Background()
	var id int64
	var lock string
	if w.pool.QueryRow(ctx, fetchSQL).Scan(&id, &lock) != nil {
		return
	}
	if w.strikes(x, 12) {
		w.n[nKilled].Add(1)
		return // between fetch and start
	}
	if w.strikes(x, 12) {
		w.pass(400 * time.Millisecond) // there
	}
	s, err := w.r.start(ctx, []startRequest{{lock, uuid.New(), id}})
	if w.odd("start", err) {
		return
	}
	if s[0].outcome == outcomeBusy {
		w.n[nBusy].Add(1)
	}
	for run, n := s[0].run, 0; run != nil && n < mostPeriods; n++ {
		_, run.kept = w.r.repo.Keep(ctx, run.lease)
		next, err := w.period(x, run)
		run.kept.Stop()
		if errors.Is(err, errDied) {
			return // its delivery stays as it is
		}
		run = next
	}
	_, err = w.pool.Exec(ctx, courierSQL, id)
	w.odd("courier", err)
}

// strikes is one time in n, in a storm.
func (w *weather) strikes(x *rand.Rand, n int) bool { return w.storm.Load() && x.IntN(n) == 0 }

// period works one period and returns the one that it has handed over to.
func (w *weather) period(x *rand.Rand, run *Run) (*Run, error) {
	ctx := context.Background()
	if w.strikes(x, 8) { // stopped past the lease, or nearly
		w.n[nPaused].Add(1)
		run.kept.Completing()
		w.pass(time.Duration(100+x.IntN(400)) * time.Millisecond)
	}
	if w.strikes(x, 8) {
		w.n[nForced].Add(1)
		_, err := pgtest.TryForce(ctx, w.pool, run.token.Lock, run.token.Seq, "a storm over the lanes")
		w.odd("force", err)
	}
	err := fence.Do(ctx, w.pool, run.token, func(tx pgx.Tx) error { return w.write(x, run, tx) })
	if w.odd("write", err) {
		w.n[nRefused].Add(1)
		if errors.Is(err, errDied) {
			w.n[nKilled].Add(1)
		}
		return nil, err
	}
	run.kept.Completing()
	if x.IntN(3) == 0 {
		next, err := w.r.handover(ctx, []*Run{run})
		if !w.odd("hand-over", err) && next[0] != nil {
			w.n[nHandedOver].Add(1)
			return next[0], nil
		}
	}
	q := endRequest{run: run, outcome: stateComplete}
	if x.IntN(6) == 0 {
		w.n[nFailed].Add(1)
		q.outcome, q.retry = stateFailed, time.Duration(x.IntN(100))*time.Millisecond
	}
	ok, err := w.r.end(ctx, []endRequest{q})
	switch {
	case w.odd("end", err):
	case ok[0]:
		w.n[nCompleted].Add(1)
	default:
		w.n[nRefused].Add(1)
	}
	return nil, nil
}

func (w *weather) write(x *rand.Rand, run *Run, tx pgx.Tx) error {
	ctx := context.Background()
	if _, err := tx.Exec(ctx, `insert into w values ($1, $2)`, run.token.Lock, run.token.Seq); err != nil {
		return err
	}
	if w.strikes(x, 5) { // stopped inside
		run.kept.Completing()
		if _, err := tx.Exec(ctx, `select pg_sleep($1)`, 0.1+0.4*x.Float64()); err != nil {
			return err
		}
	}
	if w.strikes(x, 12) {
		_, _ = tx.Exec(ctx, `select pg_terminate_backend(pg_backend_pid())`)
		return errDied
	}
	return nil
}
