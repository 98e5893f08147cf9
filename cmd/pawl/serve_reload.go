package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// reloadOnHangup reads the certificate and the job file again at each SIGHUP, which from then on ends nothing, until stop.
// Where there is neither, a hangup is what it is by default.
func (s *service) reloadOnHangup(ctx context.Context) (stop func()) {
	if s.certificate == nil && s.file == nil {
		return func() {}
	}
	hangup := make(chan os.Signal, 1)
	signal.Reset(syscall.SIGHUP) // what main does with it
	signal.Notify(hangup, syscall.SIGHUP)
	if s.certificate != nil {
		s.log.InfoContext(ctx, "TLS certificate loaded", s.certificate.facts()...)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range hangup {
			s.certificate.reload(ctx, s.log)
			s.file.reload(ctx, s.runner)
		}
	}()
	return func() {
		signal.Stop(hangup)
		close(hangup)
		<-done
	}
}

// idleEvery is how often it is asked whether anything is left to do.
const idleEvery = 100 * time.Millisecond

// stopWhenIdle ends the work when nothing is left of what was owed when it began: there may always be more. A database that doesn't answer is asked again.
func (s *service) stopWhenIdle(ctx context.Context, stop func()) {
	tick := time.NewTicker(idleEvery)
	defer tick.Stop()
	var began time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if began.IsZero() {
			if err := s.page.pool.QueryRow(ctx, `select clock_timestamp()`).Scan(&began); err != nil {
				continue
			}
		}
		if idle, err := s.runner.Idle(ctx, began); err == nil && idle {
			s.log.InfoContext(ctx, "nothing is owed any more")
			stop()
			return
		}
	}
}
