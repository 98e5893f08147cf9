package lockrepo

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"pgregory.net/rapid"

	"pawl/internal/pgtest"
)

// machine does to the locks of a database what it does to the model, and
// compares. Time passes in whole minutes, by moving the rows back; leases end
// half a minute later, so that the time that a test takes doesn't matter.
type machine struct {
	model
	pool   *pgxpool.Pool
	repo   *Repo
	leases []Lease
	seen   map[string]int64 // the largest token of each lock, over all histories
	floor  int64            // since the last adoption
	stale  bool             // the server has restarted since
}

const halfMinute = 30 * time.Second

func answer(err error) string {
	switch {
	case err == nil:
		return isOK
	case errors.Is(err, ErrHeld):
		return isHeld
	case errors.Is(err, ErrEnded):
		return isEnded
	case errors.Is(err, ErrNotFound):
		return isNotFound
	case errors.Is(err, ErrNotHeld):
		return isNotHeld
	}
	return err.Error()
}

func expect(t *rapid.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Fatalf("%s: %s, want %s", what, got, want)
	}
}

var (
	drawLock    = rapid.SampledFrom([]string{"x", "y"})
	drawHolder  = rapid.SampledFrom([]string{"a", "b"})
	drawKey     = rapid.SampledFrom([]string{"", "k"})
	drawMinutes = rapid.IntRange(1, 5)
)

func (m *machine) exec(t *rapid.T, sql string, args ...any) {
	t.Helper()
	if _, err := m.pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// lease draws one of the last few: older ones all behave alike.
func (m *machine) lease(t *rapid.T) (int, Lease) {
	if len(m.leases) == 0 {
		t.Skip("no lease yet")
	}
	i := rapid.IntRange(max(0, len(m.leases)-4), len(m.leases)-1).Draw(t, "lease")
	return i, m.leases[i]
}

func (m *machine) ask(t *rapid.T, q Request) {
	minutes := drawMinutes.Draw(t, "minutes")
	q.TTL = time.Duration(minutes)*time.Minute - halfMinute
	want, fresh := m.acquire(q)
	now := time.Now()
	l, err := m.repo.AcquireRequest(t.Context(), q)
	expect(t, "acquire", answer(err), want)
	if m.stale {
		m.floor, m.stale = now.Add(time.Minute).UnixMicro(), false
	}
	if want != isOK {
		return
	}
	token := l.Token.Seq
	switch o := m.locks[q.Lock]; {
	case fresh && token <= max(m.seen[q.Lock], m.floor):
		t.Fatalf("token %d after %d, with the floor at %d", token, m.seen[q.Lock], m.floor)
	case !fresh && token != o.token:
		t.Fatalf("asked again: token %d, want the same %d", token, o.token)
	}
	m.seen[q.Lock] = max(token, m.seen[q.Lock])
	m.granted(q, token, minutes)
	m.leases = append(m.leases, l)
}

// Acquire asks for a new grant.
func (m *machine) Acquire(t *rapid.T) {
	m.ask(t, Request{
		Lock: drawLock.Draw(t, "lock"), Holder: drawHolder.Draw(t, "holder"), Key: drawKey.Draw(t, "key"),
		Grant: uuid.New(), Reenter: rapid.Bool().Draw(t, "reenter"),
	})
}

// AcquireAgain asks again for a grant of before.
func (m *machine) AcquireAgain(t *rapid.T) {
	_, l := m.lease(t)
	m.ask(t, Request{Lock: l.Token.Lock, Holder: l.Holder, Grant: l.Grant})
}

// Renew renews a lease, live or not.
func (m *machine) Renew(t *rapid.T) {
	i, l := m.lease(t)
	minutes := drawMinutes.Draw(t, "minutes")
	l.TTL = time.Duration(minutes)*time.Minute - halfMinute
	n, err := m.repo.Renew(t.Context(), l)
	expect(t, "renew", answer(err), m.renew(l, minutes))
	if err == nil {
		m.leases[i] = n
	}
}

// Release releases a lease, live or not.
func (m *machine) Release(t *rapid.T) {
	_, l := m.lease(t)
	expect(t, "release", answer(m.repo.Release(t.Context(), l)), m.release(l))
}

// Force releases a lease by force, live or not.
func (m *machine) Force(t *rapid.T) {
	_, l := m.lease(t)
	outcome, err := pgtest.TryForce(t.Context(), m.pool, l.Token.Lock, l.Token.Seq, "a property test")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{"approved": isOK, "absent": isNotFound, "not_held": isNotHeld}[outcome]
	expect(t, "force", got, m.force(l.Token.Lock, l.Token.Seq))
}

// Prune deletes what has been idle for more than some minutes.
func (m *machine) Prune(t *rapid.T) {
	minutes := rapid.IntRange(-1, 3).Draw(t, "idle")
	var gone int
	idle := time.Duration(minutes)*time.Minute + halfMinute
	if err := m.pool.QueryRow(t.Context(), "select pawl.prune($1, 10)", idle).Scan(&gone); err != nil {
		t.Fatal(err)
	}
	if want := m.prune(minutes); gone != want {
		t.Fatalf("%d locks were pruned, want %d", gone, want)
	}
}

// Delete deletes a lock by hand, held or not.
func (m *machine) Delete(t *rapid.T) {
	lock := drawLock.Draw(t, "lock")
	m.exec(t, "delete from pawl.locks where name = $1", lock)
	delete(m.locks, lock)
}

// Restart makes the clock row one of an earlier start of the server.
func (m *machine) Restart(t *rapid.T) {
	m.exec(t, "update pawl.clock set incarnation = incarnation - 1")
	m.stale = true
}

// Adopt does what an acquire does by itself after a restart.
func (m *machine) Adopt(t *rapid.T) {
	now := time.Now()
	expect(t, "adopt", answer(m.repo.Adopt(t.Context(), false)), isOK)
	if m.stale {
		m.floor, m.stale = now.Add(time.Minute).UnixMicro(), false
	}
}

// Wait lets minutes pass.
func (m *machine) Wait(t *rapid.T) {
	minutes := drawMinutes.Draw(t, "minutes")
	d := time.Duration(minutes) * time.Minute
	m.exec(t, "update pawl.locks set expires_at = expires_at - $1::interval, renewed_at = renewed_at - $1::interval, acquired_at = acquired_at - $1::interval", d)
	m.exec(t, "update pawl.clock set since = since - $1::interval", d)
	m.now += minutes
}

// Check compares all locks and the history after every action.
func (m *machine) Check(t *rapid.T) {
	all, err := m.repo.List(t.Context(), Filter{})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != len(m.locks) {
		t.Fatalf("%d locks are known, want %d", len(all), len(m.locks))
	}
	for _, i := range all {
		o, state := m.locks[i.Lock], Free
		switch {
		case o == nil:
			t.Fatalf("lock %q is known, want it gone", i.Lock)
		case m.live(o):
			state = Held
		case o.grant != uuid.Nil:
			state = Stale
		}
		if i.State != state || i.Token != o.token || i.Holder != o.holder || i.Key != o.key {
			t.Fatalf("lock %q is %s by %q (%q) with token %d; want %s by %q (%q) with %d", i.Lock, i.State, i.Holder, i.Key, i.Token, state, o.holder, o.key, o.token)
		}
	}
	var n int
	if err := m.pool.QueryRow(t.Context(), "select count(*) from pawl.tenures").Scan(&n); err != nil || n != len(m.ended) {
		t.Fatalf("%d leases in the history, %v; want %d", n, err, len(m.ended))
	}
}

func TestLocksBehaveAsTheModelOverRandomHistories(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	repo, seen := newRepo(t, pool, "nobody"), map[string]int64{}
	rapid.Check(t, func(rt *rapid.T) {
		m := &machine{pool: pool, repo: repo, seen: seen}
		m.locks, m.ended = map[string]*modelLock{}, map[uuid.UUID]bool{}
		m.exec(rt, "delete from pawl.locks")
		m.exec(rt, "delete from pawl.tenures")
		m.Restart(rt)
		rt.Repeat(rapid.StateMachineActions(m))
	})
}
