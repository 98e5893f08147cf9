package lockrepo

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/internal/pgtest"
)

// witness is a connection that remembers when something was sent.
type witness struct {
	net.Conn
	wrote *atomic.Int64 // when, in ns since start
	start time.Time
}

func (w *witness) Write(p []byte) (int, error) {
	w.wrote.Store(int64(time.Since(w.start)))
	return w.Conn.Write(p)
}

// A reply may have been under way for as long as the lease lasts: what counts is when it was asked for.
func TestALeaseIsReckonedFromBeforeItsRequest(t *testing.T) {
	t.Parallel()
	cfg, err := pgxpool.ParseConfig(pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	var wrote atomic.Int64
	start, dial := time.Now(), cfg.ConnConfig.DialFunc
	cfg.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		return &witness{c, &wrote, start}, err
	}
	cfg.MaxConns = 1
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	r := newRepo(t, pool, "a")
	mustAcquire(t, r, "other") // from now on nothing is prepared: the request is the last that is sent
	l := mustAcquire(t, r, "x")
	if asked := start.Add(time.Duration(wrote.Load())); l.sent.at.After(asked) {
		t.Errorf("a grant is trusted from %v after its request", l.sent.at.Sub(asked))
	}
	l, err = r.Renew(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	if l, err = r.Renew(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	if asked := start.Add(time.Duration(wrote.Load())); l.sent.at.After(asked) {
		t.Errorf("a renewal is trusted from %v after its request", l.sent.at.Sub(asked))
	}
}

func TestABeatIsTrustedFromItsRequestNotFromItsReply(t *testing.T) {
	b := &base{batch: func(_ context.Context, n int, ls []Lease) ([]verdict, error) {
		if n > 1 {
			return nil, errAway
		}
		out := []verdict{renewed(ls[0])}
		<-time.After(5 * time.Second) // the reply is late
		return out, nil
	}}
	bubble(t, b, func(t *testing.T, k *keeper) {
		start := time.Now()
		ctx, kept := k.keep(t.Context(), leaseFor("a", 30*time.Second))
		defer kept.Stop()
		<-ctx.Done()
		wantLoss(t, ctx, ErrExpired)
		if d := time.Since(start); d > 37*time.Second {
			t.Errorf("ended after %v, want 37s: the beat was asked for after 10s", d)
		}
	})
}

func TestABeatNeverRevivesALease(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	r := newRepo(t, pool, "a")
	l := mustAcquire(t, r, "x")
	expire(t, pool, "x")
	n := &line{cfg: pool.Config(), m: r.m}
	defer n.close()
	out, _, err := n.batch(t.Context(), []Lease{l})
	if err != nil || !out[0].expires.IsZero() || out[0].lost == nil {
		t.Errorf("a lease that has ended: %+v, %v, want lost", out, err)
	}
}
