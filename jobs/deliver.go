package jobs

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
)

// queue is River's queue of deliveries; pawl.advance inserts into it.
const queue = "pawl"

// delivery is the River job: this lock has work. Which period is decided by start.
type delivery struct {
	Job  string `json:"job"`
	Lock string `json:"lock"`
}

// Kind is one River kind per job, so that a replica fetches only what it has a function for. It comes from a JSON
// field, so that it is right after unmarshalling too.
func (d delivery) Kind() string { return kind(d.Job) }

// deliver starts River. Everything that River would decide about a run is switched off: failures, retries and
// timeouts are rows of pawl's, and a River row is never worked twice. root is the parent of all runs.
func (r *Runner) deliver(root context.Context, polling bool) error {
	r.clients.renew = func(names []string) (*river.Client[pgx.Tx], error) { return r.fetch(root, names, polling) }
	return r.clients.set(root, r.handled().names, channelNames(r.alerting()))
}

// fetch starts a client that delivers what is owed of these jobs.
func (r *Runner) fetch(ctx context.Context, names []string, polling bool) (*river.Client[pgx.Tx], error) {
	channels := r.alerting()
	if len(names) == 0 && len(channels) == 0 {
		return nil, nil //nolint:nilnil // there is nothing to fetch
	}
	workers, queues := river.NewWorkers(), map[string]river.QueueConfig{}
	if len(names) > 0 {
		queues[queue] = river.QueueConfig{MaxWorkers: r.cfg.Concurrency}
	}
	if len(channels) > 0 {
		queues[alertQueue] = river.QueueConfig{MaxWorkers: alertWorkers, FetchPollInterval: alertEvery}
		r.addAlerts(workers)
	}
	// It always returns nil: River's row has done its duty when the delivery has arrived.
	arrive := river.WorkFunc(func(_ context.Context, job *river.Job[delivery]) error {
		r.arrived.Store(job.ID, nil)
		defer r.arrived.Delete(job.ID)
		r.slots <- struct{}{} // what an older client still runs counts too
		defer func() { <-r.slots }()
		r.lock(ctx, job.Args.Lock, job.ID)
		return nil
	})
	for _, name := range names {
		river.AddWorkerArgs(workers, delivery{Job: name}, arrive)
	}
	client, err := river.NewClient(riverpgxv5.New(r.direct), &river.Config{
		ID: r.cfg.Holder, Schema: "pawl", Workers: workers,
		Queues:              queues,
		FetchOnlyKnownKinds: true, SkipUnknownJobCheck: true, MaxAttempts: 1, JobTimeout: -1,
		FetchCooldown: 5 * time.Millisecond, FetchPollInterval: 250 * time.Millisecond,
		RescueStuckJobsAfter: 100 * 365 * 24 * time.Hour, // at an hour River's leader discarded a stranger's running row
		PollOnly:             polling,
		Logger:               slog.New(newQuiet(r.log.Handler())),
	})
	if err == nil {
		err = client.Start(context.WithoutCancel(ctx))
	}
	if err != nil {
		return nil, fmt.Errorf("jobs: river: %w", err)
	}
	return client, nil
}

// drain stops fetching, lets runs finish within the grace, then cancels the rest and waits for them to be drained.
func (r *Runner) drain(ctx context.Context) {
	r.draining.Store(true)
	close(r.gone)
	r.log.InfoContext(ctx, "draining", "runs", r.live.len(), "grace", r.cfg.Grace.String())
	grace, cancel := context.WithTimeout(ctx, r.cfg.Grace)
	defer cancel()
	if r.clients.stop(grace) == nil {
		return
	}
	r.cancel(ErrDrained)
	last, cancelLast := context.WithTimeout(context.WithoutCancel(ctx), drainPatience+callTimeout)
	defer cancelLast()
	if err := r.clients.stopAndCancel(last); err != nil {
		r.log.ErrorContext(ctx, "runs did not end: their leases run out and the sweep ends them", "runs", r.live.len(), "error", err)
	}
}
