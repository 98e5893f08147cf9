package jobs

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// quiet passes River's warnings and errors on, each message once in half a minute, and leaves out its news: while the
// database is away River says so several times a second, and pawl's own loops have said it already.
type quiet struct {
	slog.Handler
	told *told
}

type told struct {
	mu sync.Mutex
	at map[string]time.Time
}

func newQuiet(h slog.Handler) quiet {
	return quiet{h.WithAttrs([]slog.Attr{slog.String("from", "river")}), &told{at: map[string]time.Time{}}}
}

func (q quiet) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && q.Handler.Enabled(ctx, level)
}

func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	if !q.told.due(r.Message, r.Time) {
		return nil
	}
	return q.Handler.Handle(ctx, r)
}

func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quiet{q.Handler.WithAttrs(attrs), q.told}
}

func (q quiet) WithGroup(name string) slog.Handler { return quiet{q.Handler.WithGroup(name), q.told} }

// due reports whether a message hasn't been passed on lately.
func (t *told) due(message string, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if last, ok := t.at[message]; ok && now.Sub(last) < tellEvery {
		return false
	}
	t.at[message] = now // River's messages are constant: there are few
	return true
}
