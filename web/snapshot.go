package web

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"pawl/jobs"
	"pawl/lockrepo"
)

const (
	snapshotAge     = time.Second     // how long one answer serves everybody who looks
	snapshotTimeout = 3 * time.Second // for all parts, which are asked for at once
	most            = 100             // rows of each part
)

// part is one question's answer. A part that failed says so, the others stand.
type part[T any] struct {
	Rows []T
	More bool // there are more than Rows
	Err  error
}

// snapshot is what was true at Now. All who ask share it, so nobody changes it.
type snapshot struct {
	Now      time.Time // the database's clock, or ours when it doesn't answer
	made     time.Time // our clock at Now
	Holders  part[lockrepo.Info]
	Stale    part[lockrepo.Tenure]
	Refusals part[lockrepo.Refusal] // what was not written
	Passed   part[lockrepo.Refusal] // what log mode let pass: apart, or it would push the others out
	Runs     part[jobs.RunRecord]
	Counts   part[jobs.Counts] // one row
}

func (s *snapshot) errs() []error {
	return []error{s.Holders.Err, s.Stale.Err, s.Refusals.Err, s.Passed.Err, s.Runs.Err, s.Counts.Err}
}

// snapshots makes a snapshot when somebody looks, at most once a second.
type snapshots struct {
	locks Locks
	jobs  Jobs
	log   *slog.Logger

	mu   sync.Mutex // held while the database is asked: those who meet share one answer
	last *snapshot
}

func newSnapshots(locks Locks, j Jobs, log *slog.Logger) *snapshots {
	return &snapshots{locks: locks, jobs: j, log: log}
}

// get is the snapshot of this second. The questions don't end with the request that caused them: others wait too.
func (s *snapshots) get(ctx context.Context) *snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil || time.Since(s.last.made) >= snapshotAge {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), snapshotTimeout)
		defer cancel()
		s.last = s.read(ctx)
	}
	return s.last
}

func (s *snapshots) read(ctx context.Context) *snapshot {
	var n snapshot
	var all sync.WaitGroup
	all.Go(func() {
		n.Holders = ask(func() ([]lockrepo.Info, error) {
			return s.locks.List(ctx, lockrepo.Filter{State: lockrepo.Held, Limit: most + 1})
		})
	})
	all.Go(func() {
		n.Stale = ask(func() ([]lockrepo.Tenure, error) {
			return s.locks.StaleClaims(ctx, lockrepo.StaleFilter{Limit: most + 1})
		})
	})
	refusals := func(kind string) part[lockrepo.Refusal] {
		return ask(func() ([]lockrepo.Refusal, error) {
			return s.locks.Refusals(ctx, lockrepo.RefusalFilter{Kind: kind, Limit: most + 1})
		})
	}
	all.Go(func() { n.Refusals = refusals(lockrepo.Refused) })
	all.Go(func() { n.Passed = refusals(lockrepo.Passed) })
	all.Go(func() {
		n.Runs = ask(func() ([]jobs.RunRecord, error) { return s.jobs.Runs(ctx, jobs.RunFilter{Limit: most + 1}) })
	})
	all.Go(func() {
		n.Counts = ask(func() ([]jobs.Counts, error) {
			c, err := s.jobs.Counts(ctx)
			return []jobs.Counts{c}, err
		})
	})
	all.Wait()
	s.warn(ctx, &n)
	n.made = time.Now()
	n.Now = n.made.UTC()
	if n.Counts.Err == nil {
		n.Now = n.Counts.Rows[0].Now
	}
	return &n
}

// ask cuts an answer to what is shown.
func ask[T any](question func() ([]T, error)) (p part[T]) {
	defer func() {
		if what := recover(); what != nil { // it would end the process: nobody else is above
			p = part[T]{Err: fmt.Errorf("web: panic: %v", what), Rows: []T{}}
		}
	}()
	rows, err := question()
	if err != nil {
		return part[T]{Err: err, Rows: []T{}}
	}
	if len(rows) > most {
		return part[T]{Rows: rows[:most], More: true}
	}
	return part[T]{Rows: rows}
}

// warn says once a snapshot why parts of it are missing; the answer itself names no host.
func (s *snapshots) warn(ctx context.Context, n *snapshot) {
	for _, err := range n.errs() {
		if err != nil {
			s.log.WarnContext(ctx, "web: overview is incomplete", "error", err)
			return
		}
	}
}
