package lockrepo

import (
	"errors"
	"strings"
	"testing"
	"time"

	"pawl/internal/pgtest"
)

// onceDone asks for lock x and key k.
func onceDone(t *testing.T, r *Repo) bool {
	t.Helper()
	done, err := r.OnceDone(t.Context(), "x", "k")
	if err != nil {
		t.Fatal(err)
	}
	return done
}

func TestWhatWasFinishedOnceIsDoneAndItsLeaseReleased(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	r := newRepo(t, pool, "a")
	l := mustAcquire(t, r, "x")
	if onceDone(t, r) {
		t.Error("done before it was finished")
	}
	if err := r.FinishOnce(t.Context(), l, "k"); err != nil {
		t.Fatal(err)
	}
	if err := r.FinishOnce(t.Context(), l, "k"); err != nil {
		t.Errorf("asked again: %v", err)
	}
	if !onceDone(t, r) {
		t.Error("not done after it was finished")
	}
	if i, err := r.Show(t.Context(), "x"); err != nil || i.State != Free {
		t.Errorf("%+v, %v", i, err)
	}
	if got := ends(t, r); got != "released" {
		t.Errorf("history %q", got)
	}
	if got := run(t, pool, "select lock || key || holder || (token = $1) from pawl.once_per", l.Token.Seq); got != "xkatrue" {
		t.Errorf("noted: %q", got)
	}
	for _, other := range [][2]string{{"x", "other"}, {"y", "k"}} {
		if done, err := r.OnceDone(t.Context(), other[0], other[1]); done || err != nil {
			t.Errorf("%v: %t, %v", other, done, err)
		}
	}
}

func TestNothingIsFinishedUnderALeaseThatHasEnded(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	r := newRepo(t, pool, "a")
	for cause, lose := range map[error]func(Lease){
		ErrExpired:   func(Lease) { expire(t, pool, "x") },
		ErrTakenOver: func(Lease) { expire(t, pool, "x"); mustAcquire(t, r, "x") },
		ErrForced:    func(l Lease) { force(t, r, l) },
		ErrNotHeld: func(l Lease) {
			if err := r.Release(t.Context(), l); err != nil {
				t.Fatal(err)
			}
		},
	} {
		run(t, pool, "update pawl.locks set grant_id = null, holder = null, expires_at = null")
		l := mustAcquire(t, r, "x")
		lose(l)
		if err := r.FinishOnce(t.Context(), l, "k"); !errors.Is(err, ErrNotHeld) || !errors.Is(err, cause) {
			t.Errorf("FinishOnce = %v, want %v", err, cause)
		}
		if onceDone(t, r) {
			t.Errorf("%v: noted as done", cause)
		}
	}
}

// A lease whose time is over between the note and the release leaves no note.
func TestALeaseThatEndsWhileItIsFinishedLeavesNoNote(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	r := newRepo(t, pool, "a")
	run(t, pool, `create function pawl.slow() returns trigger language plpgsql as $$ begin
		update pawl.locks set expires_at = clock_timestamp() where name = new.lock; return new; end $$`)
	run(t, pool, `create trigger slow after insert on pawl.once_per for each row execute function pawl.slow()`)
	l := mustAcquire(t, r, "x")
	if err := r.FinishOnce(t.Context(), l, "k"); err == nil {
		t.Error("finished")
	}
	if onceDone(t, r) {
		t.Error("noted as done")
	}
}

// A release may be lost in a crash, since it is an expiry then. What was done once must not.
func TestANoteIsFlushed(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	pool := pgtest.Open(t, url)
	r := newRepo(t, pool, "a")
	run(t, pool, "create table kept (mode text)")
	run(t, pool, `create function pawl.witness() returns trigger language plpgsql as $$ begin
		insert into kept values (current_setting('synchronous_commit')); return null; end $$`)
	run(t, pool, `create constraint trigger witness after insert on pawl.once_per initially deferred for each row execute function pawl.witness()`)
	run(t, pool, `do $$ begin execute format('alter database %I set synchronous_commit = on', current_database()); end $$`)
	pool.Reset()
	if err := r.FinishOnce(t.Context(), mustAcquire(t, r, "x"), "k"); err != nil {
		t.Fatal(err)
	}
	if got := run(t, pool, "select mode from kept"); got != "on" {
		t.Errorf("at its commit, synchronous_commit is %q", got)
	}
}

func TestAOnceKeyIsChecked(t *testing.T) {
	t.Parallel()
	r := newRepo(t, pgtest.New(t), "a")
	for key, want := range map[string]string{"": "is empty", strings.Repeat("k", 256): "256 bytes", "a\x00": "UTF-8"} {
		_, err := r.OnceDone(t.Context(), "x", key)
		if !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", key, err)
		}
		if err := r.FinishOnce(t.Context(), Lease{TTL: time.Second}, key); !errors.Is(err, ErrInput) {
			t.Errorf("%q: %v", key, err)
		}
	}
}
