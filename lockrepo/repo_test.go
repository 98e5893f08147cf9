package lockrepo

import (
	"strings"
	"testing"
	"time"

	"pawl/internal/pgtest"
)

func TestBadInputIsRefusedInOneSentence(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	r := newRepo(t, pool, "a")
	for want, f := range map[string]func() error{
		"lock name is empty":               func() error { _, err := r.Acquire(t.Context(), "", 0); return err },
		"not UTF-8":                        func() error { _, err := r.Acquire(t.Context(), "a\x00", 0); return err },
		"shorten it to at most 255":        func() error { _, err := r.Acquire(t.Context(), strings.Repeat("x", 256), 0); return err },
		"TTL 1ms: give one between":        func() error { _, err := r.Acquire(t.Context(), "x", time.Millisecond); return err },
		"Config.Pool is nil":               func() error { _, err := New(Config{}); return err },
		"Config.Margin is 20s":             func() error { _, err := New(Config{Pool: pool, Margin: 20 * time.Second}); return err },
		"Config.Grace is -1s":              func() error { _, err := New(Config{Pool: pool, Grace: -time.Second}); return err },
		`state "busy": give held, stale`:   func() error { _, err := r.List(t.Context(), Filter{State: "busy"}); return err },
		"limit 1001: give one between 1":   func() error { _, err := r.StaleClaims(t.Context(), StaleFilter{Limit: 1001}); return err },
		"before is negative":               func() error { _, err := r.History(t.Context(), "x", 1, -1); return err },
		`lockrepo: no such lock: "nobody"`: func() error { _, err := r.Show(t.Context(), "nobody"); return err },
	} {
		if err := f(); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want one sentence with %q", err, want)
		}
	}
}
