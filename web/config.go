package web

import (
	"cmp"
	"context"
	"log/slog"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"pawl/jobs"
	"pawl/lockrepo"
)

// Locks is what the page asks of [*lockrepo.Repo].
type Locks interface {
	List(ctx context.Context, f lockrepo.Filter) ([]lockrepo.Info, error)
	StaleClaims(ctx context.Context, limit int) ([]lockrepo.Tenure, error)
	Refusals(ctx context.Context, f lockrepo.RefusalFilter) ([]lockrepo.Refusal, error)
}

// Jobs is what the page asks of [*jobs.History].
type Jobs interface {
	Runs(ctx context.Context, f jobs.RunFilter) ([]jobs.RunRecord, error)
	Counts(ctx context.Context) (jobs.Counts, error)
}

// Config is what a handler shows. [HealthHandler] needs neither Locks nor Jobs.
type Config struct {
	Locks    Locks
	Jobs     Jobs
	Ready    func(context.Context) error // nil, or why this process takes no work; a nil function is always ready
	Gatherer prometheus.Gatherer         // nil: /metrics is not found
	Insecure bool                        // reachable from elsewhere without a sign-in: the page and the log say so
	BasePath string                      // where it is mounted, as in /pawl; empty or / is the root
	Version  string
	Logger   *slog.Logger // nil discards
}

func (c Config) withDefaults() Config {
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	c.Version = cmp.Or(c.Version, "unknown version")
	if c.BasePath = strings.Trim(c.BasePath, "/"); c.BasePath != "" {
		c.BasePath = "/" + c.BasePath
	}
	if c.Ready == nil {
		c.Ready = func(context.Context) error { return nil }
	}
	return c
}
