package lockrepo

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/internal/pgtest"
)

func TestARoleThatDefaultsToSerializableWorks(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	cfg.ConnConfig.RuntimeParams["default_transaction_isolation"] = "serializable"
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	r := newRepo(t, pool, "a")
	l := mustAcquire(t, r, "x")
	if l, err = r.Renew(t.Context(), l); err != nil {
		t.Error(err)
	}
	if err := r.Release(t.Context(), l); err != nil {
		t.Error(err)
	}
	if _, err := alice.acquire(t, r); err != nil {
		t.Error(err)
	}
	if i, err := r.RenewAs(t.Context(), alice.on("x")); err != nil || i.Token <= l.Token.Seq {
		t.Errorf("RenewAs = %d, %v", i.Token, err)
	}
	if err := r.ReleaseAs(t.Context(), alice.on("x")); err != nil {
		t.Error(err)
	}
	r.Close()
}

// An owner that acquires again while a beat of its own has the row isn't told that the lock is held, by itself.
func TestAHolderAcquiresAgainBesideItsOwnBeat(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	r := newRepo(t, pool, "a")
	first := alice.mustAcquire(t, r)
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	if _, err := tx.Exec(t.Context(), `select from pawl.locks where name = 'x' for no key update`); err != nil {
		t.Fatal(err)
	}
	var outcome string
	const again = `select outcome from pawl.acquire('x', $1, gen_random_uuid(), '1 min', $2, true)`
	if err := pool.QueryRow(t.Context(), again, alice.holder, alice.key).Scan(&outcome); err != nil || outcome != "again" {
		t.Errorf("beside its own beat: %q, %v, want again", outcome, err)
	}
	if err := pool.QueryRow(t.Context(), again, bob.holder, bob.key).Scan(&outcome); err != nil || outcome != "held" {
		t.Errorf("another: %q, %v, want held", outcome, err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if l := alice.mustAcquire(t, r); l.Token.Seq <= first.Token.Seq {
		t.Errorf("token %d after %d", l.Token.Seq, first.Token.Seq)
	}
}

// Whoever has frozen a database means us too.
func TestADatabaseThatIsReadOnlyByDefaultIsNotWritten(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	r := newRepo(t, pool, "a")
	l := mustAcquire(t, r, "held")
	run(t, pool, `do $$ begin execute format('alter database %I set default_transaction_read_only = on', current_database()); end $$`)
	pool.Reset()
	var pg *pgconn.PgError
	_, acquired := r.Acquire(t.Context(), "x", time.Minute)
	_, renewed := r.Renew(t.Context(), l)
	_, renewedAs := r.RenewAs(t.Context(), As{Lock: "held", Holder: l.Holder, TTL: time.Minute})
	for what, err := range map[string]error{
		"acquire": acquired, "renew": renewed, "renew as": renewedAs, "release": r.Release(t.Context(), l),
		"release as": r.ReleaseAs(t.Context(), As{Lock: "held", Holder: l.Holder}),
	} {
		if !errors.As(err, &pg) || pg.Code != "25006" || !Unknown(err) {
			t.Errorf("%s = %v, want 25006", what, err)
		}
	}
}
