package lockrepo

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"pawl/fence"
	"pawl/internal/gather"
)

// Config configures a [Repo]. Pool is required.
type Config struct {
	Pool       *pgxpool.Pool         // acquires and releases; heartbeats have connections of their own
	Holder     string                // who we are; default host/pid/random
	TTL        time.Duration         // of Hold's leases, 100 ms to 24 h; default 30 s
	Margin     time.Duration         // distrust a lease this long before its end, below TTL/2; default a tenth of each lease's TTL
	Grace      time.Duration         // how long Hold renews after its context has ended; default 30 s
	Logger     *slog.Logger          // default discards
	Registerer prometheus.Registerer // default none
}

const (
	executors    = 4   // acquire calls at a time, and release calls
	mostTogether = 100 // requests in one of them
)

// Repo acquires, renews and releases locks for one process. It is safe for
// concurrent use.
type Repo struct {
	cfg      Config
	m        *metrics
	keeper   *keeper
	acquires *gather.Gatherer[Request, grant]
	releases *gather.Gatherer[releaseRequest, releaseAnswer]
	waits    waits
	pooled   atomic.Int32 // whether Config.Pool reaches Postgres through a pooler: unknown, no, yes

	// beside runs f until Close.
	beside func(f func(ctx context.Context))
	stop   context.CancelFunc
	busy   sync.WaitGroup
}

// New returns a Repo, or an error if cfg is incomplete or contradictory. It
// doesn't touch the database.
func New(cfg Config) (*Repo, error) {
	cfg.Holder = cmp.Or(cfg.Holder, defaultHolder())
	cfg.TTL = cmp.Or(cfg.TTL, 30*time.Second)
	cfg.Grace = cmp.Or(cfg.Grace, 30*time.Second)
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("lockrepo: %w", err)
	}
	m, err := newMetrics(cfg.Registerer)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	r := &Repo{cfg: cfg, m: m, stop: stop}
	r.beside = func(f func(context.Context)) { r.busy.Go(func() { f(ctx) }) }
	r.acquires = gather.New(executors, mostTogether, r.acquireMany)
	r.releases = gather.New(executors, mostTogether, r.releaseMany)
	r.waits.listen = func(ctx context.Context) { r.listen(ctx) }
	r.waits.beside, r.waits.poll = r.beside, oftenEnough
	r.keeper = newKeeper(newHeartbeat(cfg.Pool.Config(), m), m, cfg.Logger)
	return r, nil
}

func (c *Config) check() error {
	switch {
	case c.Pool == nil:
		return errors.New("Config.Pool is nil: give the pool of the database that keeps the locks")
	case c.Margin < 0 || c.Margin >= c.TTL/2:
		return fmt.Errorf("Config.Margin is %v: give one of at least 0 and below half the TTL of %v", c.Margin, c.TTL)
	case c.Grace < 0:
		return fmt.Errorf("Config.Grace is %v: give one of at least 0", c.Grace)
	}
	return checkTTL(c.TTL)
}

// Close ends the heartbeats and closes their connections; contexts of leases
// that are still kept end with [ErrClosed]. It doesn't close Config.Pool.
func (r *Repo) Close() {
	r.stop()
	r.keeper.close()
	r.busy.Wait()
	r.acquires.Close()
	r.releases.Close()
}

// Granted makes the Lease of a token that the caller's own statement has
// issued. sent is [Now] from before that statement was sent.
func (r *Repo) Granted(tok fence.Token, grant uuid.UUID, holder string, ttl time.Duration, sent Instant) Lease {
	return Lease{Token: tok, Grant: grant, Holder: holder, TTL: ttl, sent: sent, margin: r.margin(ttl)}
}

// margin never eats more than half of a short lease.
func (r *Repo) margin(ttl time.Duration) time.Duration {
	return min(cmp.Or(r.cfg.Margin, ttl/10), ttl/2)
}

func defaultHolder() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s/%d/%s", host, os.Getpid(), rand.Text()[:8])
}
