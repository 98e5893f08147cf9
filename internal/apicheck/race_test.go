package apicheck_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/internal/pgtest"
	"pawl/lockrepo"
	"pawl/lockrepo/lockclient"
	"pawl/web"
)

const (
	racers = 64
	race   = 10 * time.Second
)

func TestOfManyClientsThatRaceForOneNameNoTwoEverHoldIt(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	locks, err := lockrepo.New(lockrepo.Config{Pool: pool})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(locks.Close)
	srv := httptest.NewServer(web.Handler(web.Config{API: locks}))
	t.Cleanup(srv.Close)
	counted := &counter{next: &http.Transport{MaxIdleConnsPerHost: racers}}
	ctx, cancel := context.WithTimeout(t.Context(), race)
	defer cancel()
	var all sync.WaitGroup
	var inside, granted, refused atomic.Int64
	for range racers {
		c, err := lockclient.New(lockclient.Config{Server: srv.URL, HTTP: &http.Client{Transport: counted}})
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			for ctx.Err() == nil {
				dies, ttl := rand.IntN(100) == 0, 30*time.Second
				if dies {
					ttl = time.Second // only time frees the lock
				}
				l, err := c.Acquire(t.Context(), "the name", ttl)
				if errors.Is(err, lockclient.ErrHeld) {
					refused.Add(1)
					pause(ctx, 250*time.Millisecond)
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				if inside.Add(1) != 1 && !dies {
					t.Errorf("%s was granted while another held it", l.Token)
				}
				if granted.Add(1)%5 == 0 {
					if l, err = c.Renew(t.Context(), l); err != nil {
						t.Error(err)
					}
				}
				if inside.Add(-1); dies {
					continue
				}
				if err := c.Release(t.Context(), l); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	t.Logf("%d grants and %d refusals to %d clients in %s", granted.Load(), refused.Load(), racers, race)
	if n := granted.Load(); n <= 100 {
		t.Errorf("%d grants, want more than 100", n)
	}
	if n := counted.faults.Load(); n != 0 {
		t.Errorf("%d answers of 500 and above", n)
	}
	wantNoOverlap(t, pool)
}

// wantNoOverlap puts the history under an exclusion constraint, which is checked for every row.
func wantNoOverlap(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	const sql = `
create table held (token bigint, during tstzrange not null, exclude using gist (during with &&));
insert into held select token, tstzrange(acquired_at, ended_at, '[)') from pawl.tenures where lock = 'the name'
 union all select token, tstzrange(acquired_at, expires_at, '[)') from pawl.locks where name = 'the name' and grant_id is not null`
	if _, err := pool.Exec(t.Context(), sql); err != nil {
		t.Errorf("two tenures overlap: %v", err)
	}
	var tenures, backwards, empty int
	if err := pool.QueryRow(t.Context(), `
select count(*), count(*) filter (where token <= before), count(*) filter (where isempty(during))
  from (select token, during, lag(token) over (order by lower(during)) as before from held) h`).Scan(&tenures, &backwards, &empty); err != nil {
		t.Fatal(err)
	}
	if tenures <= 100 || backwards != 0 || empty != 0 {
		t.Errorf("%d tenures, %d of them with a token below the one before, %d without a duration", tenures, backwards, empty)
	}
}

// pause lets up to d go by.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(rand.N(d))
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// counter counts what no client may ever be told.
type counter struct {
	next   http.RoundTripper
	faults atomic.Int64
}

func (c *counter) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := c.next.RoundTrip(r)
	if err == nil && resp.StatusCode >= http.StatusInternalServerError {
		c.faults.Add(1)
	}
	return resp, err
}
