package bench_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/lockrepo"
	"pawl/lockrepo/keys"
	"pawl/web"
)

// The statements of an acquire and a release by the API, as lockrepo sends them for one caller.
const (
	apiAcquireSQL = `select 1, outcome, coalesce(token, 0), coalesce(holder, ''), acquired_at, expires_at
		from pawl.acquire($1::text, $2::text, $3::text::uuid, $4::bigint * interval '1 us', $5::text, $6::boolean, nullif($7::text, ''))`
	apiReleaseSQL = `select a.outcome, coalesce(a.token, 0), coalesce(a.held, 0) from pawl.release_as($1::text, $2::text, $3::text, $4::bigint) a`
)

// BenchmarkAPI: acquire and release over keep-alive connections, with a key, against the same statements sent through pgx by
// as many clients with a connection each. The server has the 16 connections that pawl serve gives the API.
func BenchmarkAPI(b *testing.B) {
	for _, c := range []struct{ clients, times int }{{1, 1000}, {8, 300}, {32, 100}} {
		b.Run(fmt.Sprintf("%d clients", c.clients), func(b *testing.B) {
			direct := durable(b, int32(max(c.clients, 16)))
			api := newAPI(b, direct, c.clients)
			pairs(b, timed(c.clients, c.times, func(g int) error { return pairBySQL(direct, g) }),
				timed(c.clients, c.times, api.pair))
			b.ReportMetric(float64(len(api.took))/api.total().Seconds()*float64(c.clients), "pairs/s")
			report(b, api.took, "pair")
		})
	}
}

func pairBySQL(pool *pgxpool.Pool, g int) error {
	ctx, lock := context.Background(), fmt.Sprint("sql ", g)
	var outcome string
	err := pool.QueryRow(ctx, apiAcquireSQL, lock, "a", uuid.NewString(), time.Minute.Microseconds(), "k", true, uuid.NewString()).
		Scan(nil, &outcome, nil, nil, nil, nil)
	if err == nil && outcome == "granted" {
		err = pool.QueryRow(ctx, apiReleaseSQL, lock, "a", "k", 0).Scan(&outcome, nil, nil)
	}
	if err == nil && outcome != "released" {
		err = fmt.Errorf("outcome %s", outcome)
	}
	return err
}

// apiClient measures each pair of calls. Each client has a connection that it writes to and reads from by itself: the
// goroutines of net/http's client would be a good part of what is measured.
type apiClient struct {
	key   string
	conns []*bufio.ReadWriter

	mu   sync.Mutex
	took []time.Duration
}

func newAPI(b *testing.B, direct *pgxpool.Pool, clients int) *apiClient {
	b.Helper()
	ctx, cfg := context.Background(), direct.Config()
	cfg.MaxConns = 16
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pool.Close)
	repo, err := lockrepo.New(lockrepo.Config{Pool: pool})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(repo.Close)
	store := keys.New(pool)
	key, _, err := store.Create(ctx, keys.Key{Name: "bench", Role: keys.Worker, CreatedBy: "bench"})
	if err != nil {
		b.Fatal(err)
	}
	srv := httptest.NewServer(web.Handler(web.Config{API: repo, Keys: store}))
	b.Cleanup(srv.Close)
	a := &apiClient{key: key}
	for range clients {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", srv.Listener.Addr().String())
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = c.Close() })
		a.conns = append(a.conns, bufio.NewReadWriter(bufio.NewReader(c), bufio.NewWriter(c)))
	}
	return a
}

func (a *apiClient) pair(g int) error {
	start, lock := time.Now(), fmt.Sprint("/locks/http-", g)
	err := a.call(g, http.MethodPost, lock, `{"owner":"a","ttl_seconds":60}`, http.StatusOK)
	if err == nil {
		err = a.call(g, http.MethodDelete, lock, `{"owner":"a"}`, http.StatusNoContent)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.took = append(a.took, time.Since(start))
	return err
}

func (a *apiClient) call(g int, method, path, body string, want int) error {
	c := a.conns[g]
	_, err := fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s",
		method, path, a.key, len(body), body)
	if err := cmp.Or(err, c.Flush()); err != nil {
		return err
	}
	return answered(c.Reader, want)
}

// answered reads one response without keeping any of it: parsing what nobody looks at would be measured as the server's.
func answered(r *bufio.Reader, want int) error {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return err
	}
	if got := string(line[len("HTTP/1.1 "):][:3]); got != strconv.Itoa(want) {
		return errors.New(string(line))
	}
	length := 0
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return err
		}
		if len(line) == len("\r\n") {
			_, err = r.Discard(length)
			return err
		}
		if n, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(n))); err != nil {
				return err
			}
		}
	}
}

func (a *apiClient) total() (d time.Duration) {
	for _, t := range a.took {
		d += t
	}
	return d
}
