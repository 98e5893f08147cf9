package web_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/jobs"
	"pawl/lockrepo"
	"pawl/web"
)

// trial is a table in log mode: a script wrote without a lease, and an old holder under its token; one write of the old
// holder's was refused before.
const trial = `
insert into pawl.refusals (lock, token, current, holder, target, statement, passed, nth)
values ('job:x', null, 1795969942676573, null, 'public.ledger', 'UPDATE', true, null),
       ('job:x', 1795969904000001, 1795969942676573, 'worker-1', 'public.ledger', 'INSERT', true, null);
insert into pawl.refusals (lock, token, current, holder, target, statement)
values ('job:x', 1795969904000001, 1795969942676573, 'worker-1', 'public.other', 'INSERT')`

func TestWhatLogModeLetThroughIsNoRefusedWrite(t *testing.T) {
	t.Parallel()
	srv, _ := open(t, trial, nil)
	var all struct {
		Refusals, LetThrough []struct {
			Token  *int64
			Passed bool
		}
	}
	body := strings.Replace(send(t, http.MethodGet, srv.URL+"/api/overview").body, "let_through", "LetThrough", 1)
	if decode(t, body, &all); len(all.Refusals) != 1 || len(all.LetThrough) != 2 || all.Refusals[0].Passed || !all.LetThrough[1].Passed || all.LetThrough[1].Token != nil {
		t.Errorf("JSON = %+v", all)
	}
	send(t, http.MethodGet, srv.URL+"/metrics").has(t, "pawl_refusals_total 1\n")
}

// somewhat answers nothing but the runs.
type somewhat struct{ broken }

func (somewhat) Runs(context.Context, jobs.RunFilter) ([]jobs.RunRecord, error) {
	return []jobs.RunRecord{{Job: "settle", State: "running"}}, nil
}

// A list that is empty because nobody answered would be a lie to a machine.
func TestAnOverviewInPartIsNone(t *testing.T) {
	t.Parallel()
	db := somewhat{broken{err: errors.New("dial 10.1.2.3: connection refused")}}
	srv := serve(t, web.Handler(web.Config{Locks: db, Jobs: db}))
	got := send(t, http.MethodGet, srv.URL+"/api/overview")
	got.isProblem(t, http.StatusServiceUnavailable, "/problems/unavailable")
	got.lacks(t, "10.1.2.3", "settle")
}

// A database that refuses connections didn't answer late: it can't be reached.
func TestADatabaseThatRefusesConnectionsIsSaidToBeOutOfReach(t *testing.T) {
	t.Parallel()
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	pool, err := pgxpool.New(t.Context(), fmt.Sprintf("postgres://somebody@%s/shop", ln.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	locks, err := lockrepo.New(lockrepo.Config{Pool: pool})
	if err != nil {
		t.Fatal(err)
	}
	defer locks.Close()
	srv := serve(t, web.Handler(web.Config{Locks: locks, Jobs: jobs.NewHistory(pool)}))
	doc := send(t, http.MethodGet, srv.URL+"/api/overview")
	doc.isProblem(t, http.StatusServiceUnavailable, "/problems/unavailable")
	doc.has(t, "The database can't be reached; ask again.")
	doc.lacks(t, "in time", "somebody", ln.Addr().String())
}

// counting counts the questions; it answers nothing.
type counting struct {
	broken
	mu sync.Mutex
	n  int
}

func (c *counting) List(context.Context, lockrepo.Filter) ([]lockrepo.Info, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	return []lockrepo.Info{}, nil
}

func TestFiftyWhoAskForTheOverviewCostOneAnswerASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := &counting{}
		h := web.Handler(web.Config{Locks: db, Jobs: db})
		look := func() {
			var all sync.WaitGroup
			for range 50 {
				all.Go(func() {
					h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/overview", nil))
				})
			}
			all.Wait()
		}
		look()
		if db.n != 1 {
			t.Fatalf("50 asked %d times, want 1", db.n)
		}
		<-time.After(time.Second)
		look()
		if db.n != 2 {
			t.Errorf("a second later they have asked %d times, want 2", db.n)
		}
	})
}
