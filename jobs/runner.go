package jobs

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"pawl/internal/gather"
	"pawl/internal/wall"
	"pawl/jobs/alert"
	"pawl/lockrepo"
)

const (
	callTimeout   = 10 * time.Second // of a database call that no caller bounds
	drainPatience = 2 * time.Second  // for a function to return once the shutdown's grace is over
	executors     = 2                // transactions of coalesced starts, ends and hand-overs at a time, each
	mostBatch     = 256              // requests in one of them
)

// Config configures a [Runner]. Pool is required; the zero value of the other fields means their default.
type Config struct {
	Pool         *pgxpool.Pool         // what jobs write through; the runner opens connections of its own beside it
	Direct       *pgxpool.Pool         // the same database past a pooler, for LISTEN; default Pool, and polling where that is pooled
	App          string                // whose jobs these are; default "default"
	Generation   int64                 // of the jobs' definitions: a stored one of a higher generation is left as it is; default 0
	WholeApp     bool                  // these are all jobs of App: stored ones that are not among them are retired
	AllowRetire  int                   // with WholeApp: so many may be retired at once; default 30 % of the app's jobs, or 2
	Holder       string                // unique among live processes; default host/pid/random
	Concurrency  int                   // runs at a time, 1 to 1000; default 10
	Grace        time.Duration         // for runs to finish at shutdown, and for a function to return after its context has ended; default 30s
	Logger       *slog.Logger          // default discards
	Registerer   prometheus.Registerer // default none
	Channels     []alert.Channel       // webhooks that are told of the events of this app's jobs, and of locks
	PlanPatience time.Duration         // for the planner to complete a pass while the database answers: then Run ends with [ErrPlannerHung]; default 5m, at least 1m
	Artifacts    ArtifactStore         // where [Run.Publish] puts files, the same for all replicas; nil: nothing is published
	ArtifactKeep time.Duration         // how long the bytes of a superseded version stay; default 24h, at least 1h
	NoPrune      bool                  // leaves out the job pawl-prune, which deletes old history once a day
}

// Runner plans, delivers and runs jobs in one process. Any number of processes may share a database.
type Runner struct {
	cfg     Config
	log     *slog.Logger
	metrics *Metrics
	jobs    map[string]Job // those that it has or had; guarded by changing once it runs, and replaced, never written to

	pool   *pgxpool.Pool // pawl's own, beside cfg.Pool
	pooled bool          // cfg.Pool, and so pool, is behind a transaction pooler
	direct *pgxpool.Pool // River's and the listener's, past the pooler if there is a way
	repo   *lockrepo.Repo
	plans  planCache
	clock  func() time.Time // our own wall clock, which only guards against a database's that is wrong

	mostWait time.Duration // for a row or a lane

	passes  atomic.Uint64               // that the planner has completed
	hung    atomic.Bool                 // it completes none
	failed  chan error                  // why the runner ends by itself
	answers func(context.Context) error // whether the database answers a call of its own
	skewed  atomic.Bool                 // it was said that the clocks differ

	starts    *gather.Gatherer[startRequest, started]
	ends      *gather.Gatherer[endRequest, bool]
	handovers *gather.Gatherer[*Run, *Run]

	cancel    context.CancelCauseFunc // ends the context of all runs
	draining  atomic.Bool
	running   atomic.Bool   // Run was called
	started   atomic.Bool   // the jobs are registered and delivered
	gone      chan struct{} // closed when stuck functions aren't waited for any more
	sweepNow  chan struct{}
	live      runs
	needed    atomic.Pointer[map[string][]string] // by job: those that need it
	arrived   sync.Map                            // ids of the deliveries that this process works
	stuck     atomic.Int64
	channels  []alert.Channel // guarded and replaced as jobs is
	names     []string        // of the jobs whose function it has, sorted; guarded and replaced as jobs is
	ttls      []int64         // their TTLs in ms
	changing  sync.RWMutex
	reloading sync.Mutex
	clients   clients
	slots     chan struct{}
	busyFor   sync.WaitGroup
}

// New returns a runner without jobs, or the first field of cfg that can't be used. It doesn't touch the database.
func New(cfg Config) (*Runner, error) {
	cfg.App = cmp.Or(cfg.App, "default")
	cfg.Holder = cmp.Or(cfg.Holder, defaultHolder())
	cfg.Concurrency = cmp.Or(cfg.Concurrency, 10)
	cfg.Grace = cmp.Or(cfg.Grace, 30*time.Second)
	cfg.PlanPatience = cmp.Or(cfg.PlanPatience, planPatience)
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	switch {
	case cfg.Pool == nil:
		return nil, &ConfigError{Field: "Pool", Fix: "give the pool that jobs write through"}
	case cfg.Concurrency < 1 || cfg.Concurrency > 1000:
		return nil, &ConfigError{Field: "Concurrency", Value: cfg.Concurrency, Fix: "use 1 to 1000"}
	case cfg.Grace < 0:
		return nil, &ConfigError{Field: "Grace", Value: cfg.Grace, Fix: "use a positive duration"}
	case cfg.PlanPatience < leastPatience:
		return nil, &ConfigError{Field: "PlanPatience", Value: cfg.PlanPatience, Fix: "use " + leastPatience.String() + " or more: a call that the network swallows takes a part of it"}
	case len(cfg.Holder) > 100 || storable(cfg.Holder) != cfg.Holder:
		return nil, &ConfigError{Field: "Holder", Value: cfg.Holder, Fix: "use at most 100 bytes of UTF-8 without NUL"}
	case storable(cfg.App) != cfg.App:
		return nil, &ConfigError{Field: "App", Value: cfg.App, Fix: "use UTF-8 without NUL"}
	case cfg.ArtifactKeep != 0 && cfg.ArtifactKeep < leastKeep:
		return nil, &ConfigError{Field: "ArtifactKeep", Value: cfg.ArtifactKeep, Fix: keepFix}
	}
	if err := checkChannels(cfg.Channels); err != nil {
		return nil, err
	}
	r := &Runner{
		cfg: cfg, channels: cfg.Channels, log: cfg.Logger, metrics: NewMetrics(cfg.Registerer), jobs: map[string]Job{}, clock: wall.Now, mostWait: mostWait,
		gone: make(chan struct{}), sweepNow: make(chan struct{}, 1), slots: make(chan struct{}, cfg.Concurrency), failed: make(chan error, 1),
	}
	r.answers = r.asked
	return r, nil
}

// Add adds a job. It returns a [*ConfigError] or [*JobError] that names the field, the value and the fix. All jobs are added
// before Run.
func (r *Runner) Add(j Job) error {
	j, err := j.withDefaults()
	if err != nil {
		return err
	}
	if j.Name == pruneName {
		return &ConfigError{j.Name, "Name", j.Name, "it is the name of pawl's own job: use another"}
	}
	if _, twice := r.jobs[j.Name]; twice {
		return &ConfigError{j.Name, "Name", j.Name, "it is used twice: give each job a name of its own"}
	}
	r.jobs[j.Name] = j
	return nil
}

// Run stores the jobs' schedules, then plans, delivers and runs until ctx ends. Then it takes no new work, lets runs
// finish within the grace, cancels the rest (they are drained and cost no attempt), and returns nil. It returns an
// error if it can't begin, or [ErrPlannerHung] when it can't go on. A runner runs once.
func (r *Runner) Run(ctx context.Context) error {
	if r.running.Swap(true) {
		return errRanTwice
	}
	if !r.cfg.NoPrune {
		j, err := pruneJob().withDefaults()
		if err != nil {
			return err
		}
		r.jobs[pruneName] = j
	}
	r.setJobs(r.jobs, slices.Sorted(maps.Keys(r.jobs)))
	polling, err := r.open(ctx)
	if err != nil {
		return stopped(ctx, err)
	}
	defer func() { r.endAll(r.shut) }()
	// A server that has restarted is adopted; a copy that was restored elsewhere must not run production's owed periods.
	if err := r.repo.Adopt(ctx, false); err != nil {
		return stopped(ctx, fmt.Errorf("jobs: %w", err))
	}
	if err := r.register(ctx); err != nil {
		return stopped(ctx, err)
	}
	if err := r.openChannels(ctx); err != nil {
		return stopped(ctx, err)
	}
	root, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(ErrDrained)
	r.cancel = cancel
	if err := r.deliver(root, polling); err != nil {
		return err
	}
	background, stop := context.WithCancel(root)
	r.loops(background, polling)
	r.started.Store(true)
	r.log.InfoContext(ctx, "runner started", "holder", r.cfg.Holder, "jobs", r.names, "concurrency", r.cfg.Concurrency, "polling", polling)
	select {
	case <-ctx.Done():
	case err = <-r.failed:
	}
	r.drain(root)
	stop()
	r.endAll(r.busyFor.Wait)
	r.log.InfoContext(ctx, "runner stopped", "holder", r.cfg.Holder)
	return err
}

// stopped is nil when err is only that the runner was told to stop while it began.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil //nolint:nilerr // whatever failed, it was told to stop
	}
	return err
}

// Ready answers nil, or a [*NotReadyError] that says why the runner takes no work.
func (r *Runner) Ready() error {
	switch n := r.stuck.Load(); {
	case !r.started.Load():
		return &NotReadyError{"starting: the jobs are not registered yet"}
	case r.hung.Load():
		return &NotReadyError{"the planner is hung: this process ends, so that it is started again"}
	case r.draining.Load():
		return &NotReadyError{"draining: runs are finishing, no new ones start"}
	case n >= int64(r.cfg.Concurrency):
		return &NotReadyError{fmt.Sprintf("all %d slots are stuck in functions that ignore their context: restart this process", n)}
	}
	return nil
}

// handled is the jobs whose function this process has, as they are at one moment.
type handled struct {
	jobs  map[string]Job // and those that it had
	names []string
	ttls  []int64 // in ms
}

func (r *Runner) handled() handled {
	r.changing.RLock()
	defer r.changing.RUnlock()
	return handled{r.jobs, r.names, r.ttls}
}

// busy is how long a lock that somebody outside holds is left alone, unless its release is heard.
func (r *Runner) busy() time.Duration { return 2 * time.Second }

func defaultHolder() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%.60s/%d/%s", host, os.Getpid(), rand.Text()[:8])
}
