package lockrepo

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"pawl/internal/pgtest"
)

// Many at once share a few calls; each has its own answer.
func TestRequestsThatShareACallHaveTheirOwnAnswers(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	r := newRepo(t, pool, "a")
	const n, each = 20, 5
	leases := make(chan Lease, n*each)
	var all sync.WaitGroup
	for i := range n * each {
		all.Go(func() {
			name := fmt.Sprint("lock ", i%n)
			l, err := r.Acquire(t.Context(), name, time.Minute)
			switch {
			case err == nil && l.Token.Lock == name:
				leases <- l
			case !errors.Is(err, ErrHeld):
				t.Errorf("acquire %q = %v, %v", name, l.Token, err)
			}
		})
	}
	all.Wait()
	close(leases)
	if len(leases) != n {
		t.Errorf("%d leases on %d locks", len(leases), n)
	}
	for l := range leases {
		all.Go(func() {
			if i, err := r.Show(t.Context(), l.Token.Lock); err != nil || i.Token != l.Token.Seq {
				t.Errorf("%v: the lock has %d, %v", l.Token, i.Token, err)
			}
			if err := r.Release(t.Context(), l); err != nil {
				t.Error(err)
			}
			if err := r.Release(t.Context(), l); !errors.Is(err, ErrNotHeld) {
				t.Errorf("released twice: %v", err)
			}
		})
	}
	all.Wait()
}

// Somebody who keeps a lock's row holds up the release of that lock alone.
func TestAReleaseThatWaitsForItsRowDoesNotHoldUpOthers(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	r := newRepo(t, pool, "a")
	kept, err := r.Acquire(t.Context(), "kept", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	free, err := r.Acquire(t.Context(), "free", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `select from pawl.locks where name = 'kept' for update`); err != nil {
		t.Fatal(err)
	}
	qs := []releaseRequest{{"kept", &kept.Token.Seq, kept.Grant.String()}, {"free", &free.Token.Seq, free.Grant.String()}}
	if _, err := r.releaseMany(t.Context(), qs); err == nil {
		t.Fatal("a call whose row is kept was answered")
	}
	first := make(chan error, 1)
	go func() { first <- r.Release(t.Context(), kept) }()
	pgtest.Eventually(t, 5*time.Second, "the first release waits", func() bool {
		waits := false
		return pool.QueryRow(t.Context(), `select exists (select from pg_stat_activity where wait_event_type = 'Lock' and query like '%pawl.release%' and datname = current_database())`).Scan(&waits) == nil && waits
	})
	if err := r.Release(t.Context(), free); err != nil {
		t.Errorf("the other lock's release = %v", err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-first; err != nil {
		t.Errorf("the release that waited = %v", err)
	}
}
