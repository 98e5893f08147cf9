package web

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"pawl/fence"
	"pawl/lockrepo"
	"pawl/lockrepo/keys"
	"pawl/web/ui"
)

// API is what the lock API asks of [*lockrepo.Repo].
type API interface {
	AcquireRequest(ctx context.Context, q lockrepo.Request) (lockrepo.Lease, error)
	AcquireIdempotent(ctx context.Context, q lockrepo.Request, idempotencyKey string, body [32]byte) (lockrepo.Lease, error)
	RenewAs(ctx context.Context, a lockrepo.As) (lockrepo.Info, error)
	ReleaseAs(ctx context.Context, a lockrepo.As) error
	Show(ctx context.Context, lock string) (lockrepo.Info, error)
	List(ctx context.Context, f lockrepo.Filter) ([]lockrepo.Info, error)
	History(ctx context.Context, lock string, limit int, before int64) ([]lockrepo.Tenure, error)
	CheckTarget(ctx context.Context, tok fence.Token, target string) (current bool, last *int64, err error)
}

// Keys is what the sign-in asks of [*keys.Store].
type Keys interface {
	Check(ctx context.Context, bearer string) (keys.Key, error)
	Any(ctx context.Context) (bool, error)
	List(ctx context.Context) ([]keys.Key, error)
}

// Locks is what the pages ask of [*lockrepo.Repo].
type Locks interface{ ui.Locks }

// Jobs is what the pages ask of [*jobs.History].
type Jobs interface{ ui.Jobs }

// Config is what a handler shows. [HealthHandler] needs neither Locks nor Jobs.
type Config struct {
	Locks     Locks
	Jobs      Jobs
	Approvals ui.Approvals                         // nil: the pages show no requests
	Acts      ui.Acts                              // what people may do on the pages, see [NewActs]; nil: nothing
	API       API                                  // nil: the lock API is not found
	Artifacts Artifacts                            // nil: /artifacts/ is not found, and the pages offer no downloads
	Keys      Keys                                 // nil, or no key ever made: everybody may do everything; without Insecure by an address, or a name without a dot
	MaxHold   time.Duration                        // how long one lease of the lock API may last, renewals included: longer ones are cut; 100 ms or more, default 24 h
	Ready     func(context.Context) error          // nil, or why this process takes no work; a nil function is always ready
	Wrong     func() []string                      // what of the job file can't be used, a line each; nil: there is no file
	Gatherer  prometheus.Gatherer                  // nil: /metrics is not found
	Insecure  bool                                 // reachable from elsewhere without a sign-in: the page and the log say so
	Proxy     *Proxy                               // who signs people in before the pages; nil: nobody
	User      func(*http.Request) (ui.User, error) // who looks at the pages; nil: who a key says. It may answer [ui.ErrSignIn] or a [*ui.RefusedError]
	ReadOnly  bool                                 // nobody may do anything on the pages; the lock API has its own roles
	Cross     *http.CrossOriginProtection          // what other sites may send to the pages; nil: nothing
	Database  string                               // what the pages call it
	BasePath  string                               // where it is mounted, as in /pawl; empty or / is the root
	Version   string
	Logger    *slog.Logger // nil discards
}

func (c Config) withDefaults() Config {
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	c.MaxHold = cmp.Or(c.MaxHold, 24*time.Hour)
	c.Version = cmp.Or(c.Version, "unknown version")
	if c.BasePath = strings.Trim(c.BasePath, "/"); c.BasePath != "" {
		c.BasePath = "/" + c.BasePath
	}
	if c.Wrong == nil {
		c.Wrong = func() []string { return nil }
	}
	if c.Ready == nil {
		c.Ready = func(context.Context) error { return nil }
	}
	return c
}
