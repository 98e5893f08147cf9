package lockrepo

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/fence"
	"pawl/internal/pgtest"
)

// as is a caller of the API: an owner under a key.
type as struct{ holder, key string }

var (
	alice    = as{"alice", "k1"}
	bob      = as{"bob", "k2"}
	mallory  = as{"mallory", "k3"}
	impostor = as{"alice", "k2"} // another caller of the same name
)

func (a as) acquire(t *testing.T, r *Repo) (Lease, error) {
	t.Helper()
	return r.AcquireRequest(t.Context(), Request{Lock: "x", Holder: a.holder, Key: a.key, TTL: time.Minute, Reenter: true, RequestID: "req-" + a.holder})
}

func (a as) mustAcquire(t *testing.T, r *Repo) Lease {
	t.Helper()
	l, err := a.acquire(t, r)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (a as) on(lock string) As {
	return As{Lock: lock, Holder: a.holder, Key: a.key, TTL: 2 * time.Minute, MaxHold: 24 * time.Hour}
}

// scene brings lock x to a state.
type scene func(t *testing.T, r *Repo, pool *pgxpool.Pool)

func heldBy(all ...as) scene {
	return func(t *testing.T, r *Repo, pool *pgxpool.Pool) {
		t.Helper()
		for i, a := range all {
			if i > 0 {
				expire(t, pool, "x")
			}
			a.mustAcquire(t, r)
		}
	}
}

func then(s, next scene) scene {
	return func(t *testing.T, r *Repo, pool *pgxpool.Pool) {
		t.Helper()
		s(t, r, pool)
		next(t, r, pool)
	}
}

func expired(t *testing.T, _ *Repo, pool *pgxpool.Pool) {
	t.Helper()
	expire(t, pool, "x")
}

func releasedBy(a as) scene {
	return func(t *testing.T, r *Repo, _ *pgxpool.Pool) {
		t.Helper()
		if err := r.ReleaseAs(t.Context(), a.on("x")); err != nil {
			t.Fatal(err)
		}
	}
}

func forced(t *testing.T, r *Repo, pool *pgxpool.Pool) {
	t.Helper()
	i, err := r.Show(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	pgtest.Force(t, pool, "x", i.Token, "a test of force")
}

// swept is what the sweep makes of an expired lease that nobody has taken.
func swept(t *testing.T, _ *Repo, pool *pgxpool.Pool) {
	t.Helper()
	run(t, pool, `
with l as (update pawl.locks set expires_at = clock_timestamp() where name = 'x' returning *), e as (
  insert into pawl.tenures (lock, token, grant_id, holder, key, acquired_at, expires_at, ended_at, how)
  select name, token, grant_id, holder, key, acquired_at, expires_at, expires_at, 'expired' from l) select name from l`)
	run(t, pool, `update pawl.locks set grant_id = null, holder = null, key = null, expires_at = null where name = 'x'`)
}

func forgotten(t *testing.T, _ *Repo, pool *pgxpool.Pool) {
	t.Helper()
	run(t, pool, `delete from pawl.tenures`)
}

func nothing(*testing.T, *Repo, *pgxpool.Pool) {}

// The table of the lock API's contract, and the release's rule.
func TestRenewAndReleaseAnswerByWhoAsks(t *testing.T) {
	t.Parallel()
	byGo := func(t *testing.T, r *Repo, _ *pgxpool.Pool) {
		t.Helper()
		if _, err := r.AcquireRequest(t.Context(), Request{Lock: "x", Holder: "alice", TTL: time.Minute}); err != nil {
			t.Fatal(err)
		}
	}
	byRun := then(heldBy(alice), func(t *testing.T, _ *Repo, pool *pgxpool.Pool) {
		t.Helper()
		run(t, pool, `update pawl.locks set key = null`)
	})
	for _, c := range []struct {
		name    string
		scene   scene
		who     as
		renew   error
		release error
	}{
		{"live, theirs", heldBy(alice), alice, nil, nil},
		{"live, another's, who once held it", heldBy(alice, bob), alice, ErrNotHeld, ErrMismatch},
		{"live, another's, who held it twice before", heldBy(alice, bob, mallory), alice, ErrNotHeld, ErrMismatch},
		{"live, another's, a stranger", heldBy(alice, bob), mallory, ErrMismatch, ErrMismatch},
		{"live, the right owner under another key", heldBy(alice), impostor, ErrMismatch, ErrMismatch},
		{"live, the owner of that name once held it under another key", heldBy(alice, bob), impostor, ErrMismatch, ErrMismatch},
		{"live, once held, but that is pruned", then(heldBy(alice, bob), forgotten), alice, ErrMismatch, ErrMismatch},
		{"live, another's, taken after a release", then(then(heldBy(alice), releasedBy(alice)), heldBy(bob)), alice, ErrNotHeld, ErrMismatch},
		{"live, of a Go program of that name", byGo, alice, ErrMismatch, ErrMismatch},
		{"live, of a run", byRun, as{"alice", ""}, ErrMismatch, ErrMismatch},
		{"expired, its holder", then(heldBy(alice), expired), alice, ErrNotHeld, ErrNotFound},
		{"expired, a stranger", then(heldBy(alice), expired), mallory, ErrNotHeld, ErrNotFound},
		{"expired and swept, its holder", then(heldBy(alice), swept), alice, ErrNotHeld, ErrNotFound},
		{"expired and swept, a stranger", then(heldBy(alice), swept), mallory, ErrNotHeld, ErrNotFound},
		{"released, its last holder", then(heldBy(alice), releasedBy(alice)), alice, ErrNotHeld, ErrNotFound},
		{"released, its last holder's name under another key", then(heldBy(alice), releasedBy(alice)), impostor, ErrNotFound, ErrNotFound},
		{"released, a stranger", then(heldBy(alice), releasedBy(alice)), mallory, ErrNotFound, ErrNotFound},
		{"released, by force, its last holder", then(heldBy(alice), forced), alice, ErrNotHeld, ErrNotFound},
		{"released, but that is pruned", then(then(heldBy(alice), releasedBy(alice)), forgotten), alice, ErrNotFound, ErrNotFound},
		{"never existed", nothing, alice, ErrNotFound, ErrNotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.New(t)
			r := newRepo(t, pool, "server")
			c.scene(t, r, pool)
			before := run(t, pool, `select (l.*)::text from pawl.locks l`)
			if _, err := r.RenewAs(t.Context(), c.who.on("x")); !is(err, c.renew) {
				t.Errorf("renew: %v, want %v", err, c.renew)
			}
			if now := run(t, pool, `select (l.*)::text from pawl.locks l`); c.renew != nil && now != before {
				t.Errorf("a renewal that was refused wrote\n%s, before\n%s", now, before)
			}
			if err := r.ReleaseAs(t.Context(), c.who.on("x")); !is(err, c.release) {
				t.Errorf("release: %v, want %v", err, c.release)
			}
			if now := run(t, pool, `select (l.*)::text from pawl.locks l`); c.release != nil && now != before {
				t.Errorf("a release that was refused wrote\n%s, before\n%s", now, before)
			}
		})
	}
}

// is compares exactly: one answer must not be another as well.
func is(err, want error) bool {
	for _, e := range []error{ErrNotHeld, ErrNotFound, ErrMismatch, ErrPrecondition, ErrHeld, ErrReused, ErrEnded, ErrInput} {
		if errors.Is(err, e) != errors.Is(want, e) {
			return false
		}
	}
	return (err == nil) == (want == nil) && !Unknown(err)
}

func TestARenewalMovesTheEndAndNothingElse(t *testing.T) {
	t.Parallel()
	r := newRepo(t, pgtest.New(t), "server")
	l := alice.mustAcquire(t, r)
	i, err := r.RenewAs(t.Context(), alice.on("x"))
	if err != nil {
		t.Fatal(err)
	}
	shown, err := r.Show(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	i.ReadAt, shown.ReadAt = time.Time{}, time.Time{}
	if got, want := fmt.Sprint(i.AcquiredAt, i.RenewedAt, i.ExpiresAt), fmt.Sprint(shown.AcquiredAt, shown.RenewedAt, shown.ExpiresAt); got != want {
		t.Errorf("renewed %s, shown %s", got, want)
	}
	i.AcquiredAt, i.RenewedAt, shown.AcquiredAt, shown.RenewedAt = nil, nil, nil, nil
	until := *i.ExpiresAt
	i.ExpiresAt, shown.ExpiresAt = nil, nil
	if i != shown {
		t.Errorf("renewed %+v, shown %+v", i, shown)
	}
	if i.Token != l.Token.Seq || i.Holder != "alice" || i.Key != "k1" || i.Beats != 1 || until.Sub(l.ExpiresAt) < 59*time.Second {
		t.Errorf("renewed %+v until %s, acquired %+v", i, until, l)
	}
	if err := r.Release(t.Context(), l); err != nil { // it is the same lease for Go
		t.Error(err)
	}
}

func TestATokenThatIsNotCurrentIsRefused(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	r := newRepo(t, pool, "server")
	old := alice.mustAcquire(t, r)
	l := alice.mustAcquire(t, r)
	a := alice.on("x")
	for token, want := range map[int64]error{old.Token.Seq: ErrPrecondition, l.Token.Seq + 1: ErrPrecondition, l.Token.Seq: nil, 0: nil} {
		a.Token = token
		if _, err := r.RenewAs(t.Context(), a); !is(err, want) {
			t.Errorf("renew with token %d: %v, want %v", token, err, want)
		}
	}
	a.Token = old.Token.Seq
	if err := r.ReleaseAs(t.Context(), a); !is(err, ErrPrecondition) {
		t.Errorf("release with the old token: %v", err)
	}
	b := bob.on("x") // whose it is comes first
	b.Token = l.Token.Seq
	if _, err := r.RenewAs(t.Context(), b); !is(err, ErrMismatch) {
		t.Errorf("renew by a stranger who knows the token: %v", err)
	}
	a.Token = l.Token.Seq
	if err := r.ReleaseAs(t.Context(), a); err != nil {
		t.Errorf("release with the current token: %v", err)
	}
}

func TestTheHolderUnderTheSameKeyMayAcquireAgain(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	r := newRepo(t, pool, "server")
	old := alice.mustAcquire(t, r)
	if _, err := impostor.acquire(t, r); !errors.Is(err, ErrHeld) {
		t.Errorf("the same owner under another key: %v, want held", err)
	}
	l := alice.mustAcquire(t, r)
	if l.Token.Seq <= old.Token.Seq || !l.AcquiredAt.After(old.AcquiredAt) {
		t.Errorf("again %+v, before %+v", l, old)
	}
	if got := ends(t, r); got != "reacquired>?" { // its successor lives
		t.Errorf("history %q", got)
	}
	if got := run(t, pool, `select format('%s %s %s', request_id, expires_at > ended_at, successor = $1) from pawl.tenures`, l.Token.Seq); got != "req-alice t t" {
		t.Errorf("the old tenure says %q", got)
	}
	if _, err := r.Renew(t.Context(), old); !errors.Is(err, ErrNotHeld) {
		t.Errorf("the former self renews: %v", err)
	}
}

func TestAGuardedTransactionHoldsUpNoRenewalByName(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	r := newRepo(t, pool, "server")
	l := alice.mustAcquire(t, r)
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context())
	run(t, tx, `select pawl.guard('x', $1)::text`, l.Token.Seq)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if _, err := r.RenewAs(ctx, alice.on("x")); err != nil {
		t.Error(err)
	}
	if err := r.ReleaseAs(ctx, alice.on("x")); err != nil {
		t.Error(err)
	}
}

func TestATargetIsCheckedByItsMark(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	r := newRepo(t, pool, "server")
	for _, c := range []struct {
		lock    string
		token   int64
		current bool
		last    string
	}{
		{"x", 5, true, "never"},
		{"x", 5, true, "5"},
		{"x", 6, true, "5"},
		{"x", 4, false, "5"},
		{"y", 9, false, "5"},
	} {
		ok, last, err := r.CheckTarget(t.Context(), fence.Token{Lock: c.lock, Seq: c.token}, "account:42")
		got := "never"
		if last != nil {
			got = fmt.Sprint(*last)
		}
		if err != nil || ok != c.current || got != c.last {
			t.Errorf("%+v: %v, %s, %v", c, ok, got, err)
		}
		run(t, pool, `insert into pawl.fences values ('account:42', 'x', 5) on conflict do nothing`)
	}
	if _, _, err := r.CheckTarget(t.Context(), fence.Token{Lock: "x", Seq: 1}, ""); !is(err, ErrInput) {
		t.Errorf("without a target: %v", err)
	}
}
