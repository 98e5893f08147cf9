package lockrepo

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/internal/pgtest"
)

// ledger is what a test knows of the locks' tokens, outside the database.
type ledger struct {
	largest map[string]int64
	lease   map[string]Lease
}

func newLedger() *ledger { return &ledger{map[string]int64{}, map[string]Lease{}} }

func hundred() []string {
	locks := make([]string, 100)
	for i := range locks {
		locks[i] = fmt.Sprintf("lock-%02d", i)
	}
	return locks
}

// take acquires the locks, notes their tokens, and says which were not larger
// than all that were ever seen. It returns the smallest.
func (g *ledger) take(t *testing.T, r *Repo, when string, locks []string) (least int64) {
	t.Helper()
	var wrong int
	var example string
	for _, lock := range locks {
		l, err := r.Acquire(t.Context(), lock, time.Hour)
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		if l.Token.Seq <= g.largest[lock] {
			wrong, example = wrong+1, fmt.Sprintf("%s after %d", l.Token, g.largest[lock])
		}
		g.largest[lock], g.lease[lock] = max(g.largest[lock], l.Token.Seq), l
		if least == 0 || l.Token.Seq < least {
			least = l.Token.Seq
		}
	}
	if wrong > 0 {
		t.Errorf("%s: %d of %d tokens didn't grow, such as %s", when, wrong, len(locks), example)
	}
	return least
}

func (g *ledger) release(t *testing.T, r *Repo, locks []string) {
	t.Helper()
	for _, lock := range locks {
		if err := r.Release(t.Context(), g.lease[lock]); err != nil {
			t.Fatal(err)
		}
	}
}

// ahead is how far tokens are ahead of the database's clock: where they are,
// the clock alone doesn't make them grow.
func ahead(t *testing.T, pool *pgxpool.Pool, token int64) time.Duration {
	t.Helper()
	var us int64
	if err := pool.QueryRow(t.Context(), "select $1::bigint - pawl.now_us()", token).Scan(&us); err != nil {
		t.Fatal(err)
	}
	return time.Duration(us) * time.Microsecond
}

func TestTheNextTokenIsLargerHoweverTheLeaseHasEnded(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	r, g, locks := newRepo(t, pool, "a"), newLedger(), hundred()
	const restarted = "update pawl.clock set incarnation = 1, since = 'epoch'"
	run(t, pool, restarted)
	g.take(t, r, "at birth", locks)
	for _, end := range []struct {
		how string
		do  func()
	}{
		{"after release", func() { g.release(t, r, locks) }},
		{"after expiry", func() { run(t, pool, "update pawl.locks set expires_at = clock_timestamp() - interval '1 ms'") }},
		{"after force", func() {
			for _, lock := range locks {
				pgtest.Force(t, r.cfg.Pool, lock, g.largest[lock], "a test of tokens")
			}
		}},
		{"after pruning", func() {
			g.release(t, r, locks[:50]) // the others are held, and stay
			if n := run(t, pool, "select pawl.prune(interval '-1 s', 1000)::text"); n != "50" {
				t.Errorf("%s rows pruned, want the 50 idle ones", n)
			}
			g.release(t, r, locks[50:])
		}},
		{"after pruning in parts", func() {
			g.release(t, r, locks)
			for want := range 10 {
				if n := run(t, pool, "select pawl.prune(interval '-1 s', 10)::text"); n != "10" {
					t.Errorf("part %d: %s rows pruned, want 10", want, n)
				}
			}
		}},
		{"after deletion by hand", func() { run(t, pool, "delete from pawl.locks") }},
		{"after deletion by hand of what was free", func() {
			g.release(t, r, locks)
			run(t, pool, "delete from pawl.locks")
		}},
		{"after a restart of the server and deletion by hand", func() {
			run(t, pool, restarted)
			run(t, pool, "delete from pawl.locks")
		}},
	} {
		end.do()
		if d := ahead(t, pool, g.take(t, r, end.how, locks)); d < 30*time.Second {
			t.Errorf("%s: tokens are only %s ahead of the clock, which would make them grow by itself", end.how, d)
		}
	}
	if n := run(t, pool, "select pawl.prune(interval '-1 s', 1000)::text"); n != "0" {
		t.Errorf("%s held rows pruned", n)
	}
	if _, err := r.Acquire(t.Context(), locks[0], 0); !errors.Is(err, ErrHeld) {
		t.Errorf("Acquire of a held lock = %v", err)
	}
}
