package lockclient_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/internal/pgtest"
	"pawl/lockrepo"
	"pawl/lockrepo/keys"
	"pawl/lockrepo/lockclient"
	"pawl/web"
)

var errCut = errors.New("connection cut")

// scene is a server, its database and two holders of keys.
type scene struct {
	pool        *pgxpool.Pool
	repo        *lockrepo.Repo
	url         string
	key, reader string
}

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{pool: pgtest.New(t)}
	var err error
	if s.repo, err = lockrepo.New(lockrepo.Config{Pool: s.pool}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.repo.Close)
	store := keys.New(s.pool)
	srv := httptest.NewServer(web.Handler(web.Config{API: s.repo, Keys: store, BasePath: "/pawl"}))
	t.Cleanup(srv.Close)
	s.url = srv.URL + "/pawl"
	for name, bearer := range map[string]*string{keys.Worker: &s.key, keys.Reader: &s.reader} {
		if *bearer, _, err = store.Create(t.Context(), keys.Key{Name: name, Role: name, CreatedBy: "test"}); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// client is one of the worker's key, with leases of a second.
func (s *scene) client(t *testing.T, next http.RoundTripper) *lockclient.Client {
	t.Helper()
	c, err := lockclient.New(lockclient.Config{Server: s.url, Key: s.key, TTL: time.Second, HTTP: &http.Client{Transport: next}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// is asks the database for a fact about the lock x.
func (s *scene) is(t *testing.T, fact string) bool {
	t.Helper()
	var yes bool
	if err := s.pool.QueryRow(t.Context(), "select coalesce((select "+fact+" from pawl.locks where name = 'x/y'), false)").Scan(&yes); err != nil {
		t.Error(err)
	}
	return yes
}

func (s *scene) expire(t *testing.T) {
	t.Helper()
	if _, err := s.pool.Exec(t.Context(), "update pawl.locks set expires_at = clock_timestamp() where name = 'x/y'"); err != nil {
		t.Fatal(err)
	}
}

func TestALeaseIsHeldOverHTTPForLongerThanItsTTL(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	c := s.client(t, nil)
	err := c.Hold(t.Context(), "x/y", func(ctx context.Context, l lockclient.Lease) error {
		err := c.Hold(ctx, "x/y", nil)
		var held *lockclient.HeldError
		if !errors.As(err, &held) || held.ExpiresAt.IsZero() || held.RetryAfter < time.Second {
			t.Errorf("Hold while held: %v (%+v), want a HeldError", err, held)
		}
		if _, err := s.repo.Acquire(ctx, "x/y", time.Second); !errors.Is(err, lockrepo.ErrHeld) {
			t.Errorf("Acquire in Go while held: %v, want ErrHeld", err)
		}
		pgtest.Eventually(t, 20*time.Second, "the lease has been renewed", func() bool { return s.is(t, "beats >= 4") })
		if i, err := s.repo.Show(ctx, "x/y"); err != nil || i.Token != l.Token.Seq || i.Holder != l.Holder || l.AcquiredAt.IsZero() {
			t.Errorf("held as %+v, %v; the lease is %+v", i, err, l)
		}
		return ctx.Err()
	})
	if err != nil || !s.is(t, "grant_id is null") {
		t.Errorf("Hold = %v, released: %t", err, s.is(t, "grant_id is null"))
	}
}

func TestALossOverHTTPHasTheCauseThatTheDatabaseKnows(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	c := s.client(t, nil)
	var successor int64
	for name, k := range map[string]struct {
		lose func(l lockclient.Lease)
		want error
	}{
		"forced": {func(l lockclient.Lease) {
			pgtest.Force(t, s.pool, "x/y", l.Token.Seq, "a test of force")
		}, lockclient.ErrForced},
		"expired": {func(lockclient.Lease) { s.expire(t) }, lockclient.ErrExpired},
		"taken over": {func(lockclient.Lease) {
			s.expire(t)
			next, err := s.repo.Acquire(t.Context(), "x/y", time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			successor = next.Token.Seq
		}, lockclient.ErrTakenOver},
	} {
		t.Run(name, func(t *testing.T) {
			var inside error
			err := c.Hold(t.Context(), "x/y", func(ctx context.Context, l lockclient.Lease) error {
				k.lose(l)
				<-ctx.Done()
				inside = context.Cause(ctx)
				return nil
			})
			var lost *lockclient.LostError
			if errors.Is(k.want, lockclient.ErrTakenOver) && (!errors.As(err, &lost) || lost.Successor != successor) {
				t.Errorf("Hold = %+v, want the successor %d", lost, successor)
			}
			if !errors.Is(inside, k.want) || !errors.Is(err, k.want) || !errors.Is(err, lockclient.ErrNotHeld) {
				t.Errorf("inside %v, Hold = %v, want %v", inside, err, k.want)
			}
			s.expire(t)
		})
	}
}

// losing loses the reply to the first request with a method.
type losing struct {
	method string
	lost   atomic.Bool
}

func (l *losing) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && r.Method == l.method && l.lost.CompareAndSwap(false, true) {
		_ = resp.Body.Close()
		return nil, errCut
	}
	return resp, err
}

func TestALostReplyOverHTTPIsTheSameGrantAndTheSameRelease(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	cut := &losing{method: http.MethodPost}
	l, err := s.client(t, cut).Acquire(t.Context(), "x/y", 10*time.Second)
	if err != nil || !cut.lost.Load() {
		t.Fatalf("Acquire = %v, a reply was lost: %t", err, cut.lost.Load())
	}
	cut = &losing{method: http.MethodDelete}
	if err := s.client(t, cut).Release(t.Context(), l); err != nil || !cut.lost.Load() {
		t.Errorf("Release = %v, a reply was lost: %t", err, cut.lost.Load())
	}
	past, err := s.repo.History(t.Context(), "x/y", 0, 0)
	if err != nil || len(past) != 1 || past[0].Token != l.Token.Seq || past[0].How != "released" {
		t.Errorf("history %+v, %v; want the one lease", past, err)
	}
}

func TestAKeyThatDoesNotReachIsAnErrorOfItsOwn(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	for key, want := range map[string]int{s.reader: http.StatusForbidden, "": http.StatusUnauthorized, s.key + "x": http.StatusUnauthorized} {
		c, err := lockclient.New(lockclient.Config{Server: s.url, Key: key})
		if err != nil {
			t.Fatal(err)
		}
		var e *lockclient.StatusError
		if _, err := c.Acquire(t.Context(), "x/y", 0); !errors.As(err, &e) || e.Status != want || e.RequestID == "" || strings.Contains(err.Error(), s.key) {
			t.Errorf("Acquire = %v, want %d", err, want)
		}
	}
}

func TestWithoutTheServerALeaseEndsBeforeItsEndByTheDatabasesClock(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	c := s.client(t, nil)
	l, err := c.Acquire(t.Context(), "x/y", 2*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	away := s.client(t, roundTrip(func(*http.Request) (*http.Response, error) { return nil, errCut }))
	ctx, kept := away.Keep(t.Context(), l)
	defer kept.Stop()
	<-ctx.Done()
	if !s.is(t, "expires_at > clock_timestamp() and beats = 0") || !errors.Is(context.Cause(ctx), lockclient.ErrExpired) {
		t.Errorf("the lease has ended by the database, or was renewed; cause %v", context.Cause(ctx))
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
