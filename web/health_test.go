package web_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"pawl/jobs"
	"pawl/web"
)

const pgtestWait = 20 * time.Second

// A dead database must not restart every pod.
func TestHealthIsOKWhateverTheDatabaseDoes(t *testing.T) {
	t.Parallel()
	db := broken{err: errors.New("away")}
	cfg := web.Config{Locks: db, Jobs: db, Ready: func(context.Context) error { return errors.New("away") }}
	for _, h := range []http.Handler{web.Handler(cfg), web.HealthHandler(cfg)} {
		srv := serve(t, h)
		if got := send(t, http.MethodGet, srv.URL+"/healthz"); got.status != http.StatusOK || got.body != "ok\n" {
			t.Errorf("healthz = %d %q, want 200 ok", got.status, got.body)
		}
	}
}

func TestReadinessTellsOurReasonAndNoOther(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err         error
		has, hasNot string
	}{
		"draining":         {&jobs.NotReadyError{Reason: "draining: a shutdown has begun"}, "draining: a shutdown has begun", "jobs:"},
		"somebody's error": {errors.New("dial tcp 10.1.2.3:5432: refused"), "its log says why", "10.1.2.3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := serve(t, web.HealthHandler(web.Config{Ready: func(context.Context) error { return test.err }}))
			got := send(t, http.MethodGet, srv.URL+"/readyz")
			got.isProblem(t, http.StatusServiceUnavailable, "/problems/unavailable")
			got.has(t, test.has)
			got.lacks(t, test.hasNot)
			if got.header.Get("Retry-After") == "" {
				t.Error("no Retry-After")
			}
		})
	}
}

func TestReadinessWaitsTwoSecondsAtMost(t *testing.T) {
	t.Parallel()
	srv := serve(t, web.HealthHandler(web.Config{Ready: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}))
	start := time.Now()
	send(t, http.MethodGet, srv.URL+"/readyz").isProblem(t, http.StatusServiceUnavailable, "/problems/unavailable")
	if took := time.Since(start); took > 8*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestReadyIsOK(t *testing.T) {
	t.Parallel()
	srv := serve(t, web.HealthHandler(web.Config{}))
	if got := send(t, http.MethodGet, srv.URL+"/readyz"); got.status != http.StatusOK {
		t.Errorf("readyz = %d, want 200", got.status)
	}
}

func TestTheHealthAddressHasNoPage(t *testing.T) {
	t.Parallel()
	srv := serve(t, web.HealthHandler(web.Config{Gatherer: prometheus.NewRegistry()}))
	for _, path := range []string{"/", "/api/overview"} {
		send(t, http.MethodGet, srv.URL+path).isProblem(t, http.StatusNotFound, "/problems/not-found")
	}
	if got := send(t, http.MethodGet, srv.URL+"/metrics"); got.status != http.StatusOK {
		t.Errorf("metrics = %d, want 200", got.status)
	}
}

func TestMetricsHaveTheRowsAndTheProcess(t *testing.T) {
	t.Parallel()
	srv, pool := open(t, story, nil)
	got := send(t, http.MethodGet, srv.URL+"/metrics")
	got.has(t, `pawl_leases{state="held"} 2`, `pawl_leases{state="stale"} 1`, "pawl_refusals_total 1", "pawl_queue_depth 1",
		"pawl_queue_oldest_seconds 2", "pawl_planner_watermark_age_seconds 0", "pawl_stuck_slots 0")
	got.lacks(t, "job:settle", "2026-09-16")
	pool.Close()
	eventually(t, "without a database only the process's metrics are left", func() bool {
		got := send(t, http.MethodGet, srv.URL+"/metrics")
		return got.status == http.StatusOK && strings.Contains(got.body, "pawl_stuck_slots 0") && !strings.Contains(got.body, "pawl_leases")
	})
}
