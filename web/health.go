package web

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"pawl/jobs"
)

// readyTimeout is less than a probe waits.
const readyTimeout = 2 * time.Second

func health(mux *http.ServeMux, cfg Config) {
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { ok(w) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) { ready(w, r, cfg) })
	if cfg.Gatherer != nil {
		// A part of the metrics that can't be had must not hide the others.
		opts := promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}
		mux.Handle("GET /metrics", promhttp.HandlerFor(cfg.Gatherer, opts))
	}
}

func ok(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = io.WriteString(w, "ok\n") // the probe may have gone
}

func ready(w http.ResponseWriter, r *http.Request, cfg Config) {
	ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
	defer cancel()
	err := cfg.Ready(ctx)
	if err == nil {
		ok(w)
		return
	}
	// A reason of ours is safe to show; any other error may name a host.
	detail := "This process can't take work now; its log says why."
	if why := (*jobs.NotReadyError)(nil); errors.As(err, &why) {
		detail = why.Reason
	} else {
		cfg.Logger.WarnContext(r.Context(), "web: not ready", "error", err)
	}
	problem(w, r, cfg.BasePath, unavailable, detail)
}
