package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/examples/internal/crew"
	"pawl/jobs"
)

// round is one storm over the work of some months.
type round struct {
	url     string // of a database with pawl's schema and nothing of ours
	dir     string // the store, which is empty
	in      input
	pace    time.Duration
	seed    uint64
	variant string                        // what is wrong; empty: nothing
	log     io.Writer                     // what the workers say
	say     func(format string, a ...any) // what happens

	pool *pgxpool.Pool
}

// result is what a round has come to.
type result struct {
	OK         bool  `json:"ok"`
	Tenants    int   `json:"tenants"`
	Months     int   `json:"months"`
	Invoices   int64 `json:"invoices"`
	Cents      int64 `json:"cents"`
	Statements int64 `json:"statements"` // files that were published, with those that were published again
	Reads      int   `json:"reads"`
	Swept      int   `json:"swept"` // files of writers that had died
	crew.Faults
	Seconds float64  `json:"seconds"`
	Wrong   []string `json:"wrong,omitempty"`
}

const patience = 3 * time.Minute

// run makes the data, lets the storm blow until all months are published, and judges what is there.
func (r *round) run(ctx context.Context) (out result, err error) {
	begun := time.Now()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if r.pool, err = pgxpool.New(ctx, r.url); err != nil {
		return out, err
	}
	defer r.pool.Close()
	if err := errors.Join(create(ctx, r.pool), generate(ctx, r.pool, r.in)); err != nil {
		return out, err
	}
	store, err := jobs.NewArtifactDir(r.dir)
	if err != nil {
		return out, err
	}
	defer store.Close() //nolint:errcheck // it only reads
	// By the tokens alone: this sweep comes between a file and its pointer as often as it can.
	artifacts, err := jobs.NewArtifacts(jobs.ArtifactsConfig{Pool: r.pool, Store: store, Spare: jobs.SpareNothing})
	if err != nil {
		return out, err
	}
	look := &readers{open: byPointer(artifacts), last: map[string]string{}}
	if r.variant == renameOnly {
		look.open = byName(r.dir)
	}
	if look.right, err = totals(ctx, r.pool); err != nil {
		return out, err
	}
	s, err := r.weather(ctx, look, artifacts, &out)
	if err != nil {
		return out, err
	}
	out.Faults = crew.Faults{Seed: r.seed, Kills: s.kills, Pauses: s.pauses}
	out.Tenants, out.Months, out.Seconds = r.in.tenants, r.in.months, time.Since(begun).Seconds()
	return out, r.judge(ctx, look, &out)
}

// weather is the storm, the readers and the sweep at once, until the work is done.
func (r *round) weather(ctx context.Context, look *readers, artifacts *jobs.Artifacts, out *result) (s *storm, err error) {
	s = &storm{round: r, rng: rand.New(rand.NewPCG(r.seed, 7))} //nolint:gosec // a storm is no secret
	defer func() {
		for _, w := range s.crew {
			err = errors.Join(err, w.end())
		}
	}()
	for i := range crewSize {
		w, err := r.hire(fmt.Sprintf("worker-%d", i+1))
		if err != nil {
			return s, err
		}
		s.crew = append(s.crew, w)
	}
	all, err := tenants(ctx, r.pool)
	if err != nil {
		return s, err
	}
	raging, calm := context.WithCancel(ctx)
	defer calm()
	var others sync.WaitGroup
	var blown, swept error
	others.Go(func() { blown = s.blow(raging) })
	others.Go(func() { look.loop(raging, all) })
	others.Go(func() { out.Swept, swept = sweeping(raging, artifacts) })
	err = r.done(ctx)
	calm()
	others.Wait()
	return s, errors.Join(err, blown, swept)
}

func sweeping(ctx context.Context, a *jobs.Artifacts) (all int, err error) {
	for rest(ctx, 100*time.Millisecond) == nil {
		n, err := a.Sweep(ctx)
		all += n.Removed
		if err != nil && ctx.Err() == nil {
			return all, fmt.Errorf("sweep: %w", err)
		}
	}
	return all, nil
}

const doneSQL = `select count(*) from pawl.periods where job = 'report' and parent is null and state = 'complete'`

// done waits until all months are published.
func (r *round) done(ctx context.Context) error {
	for n := 0; n < r.in.months; {
		before := n
		if rest(ctx, 50*time.Millisecond) != nil {
			return fmt.Errorf("after %s %d of %d months are published", patience, n, r.in.months)
		}
		if err := r.pool.QueryRow(ctx, doneSQL).Scan(&n); err != nil {
			return err
		}
		if n > before {
			r.say("%d of %d months are published", n, r.in.months)
		}
	}
	return nil
}

const countsSQL = `
select (select count(*) from pawl.artifact_versions), (select count(*) from pawl.tenures where how = 'taken_over'), (select count(*) from pawl.refusals),
       (select count(*) from report_demo.invoices), (select sum(cents)::bigint from report_demo.invoices)`

// judge looks at everything once more, when nobody writes.
func (r *round) judge(ctx context.Context, look *readers, out *result) error {
	last := r.in.first.AddDate(0, r.in.months-1, 0).Format("2006-01")
	all, err := tenants(ctx, r.pool)
	if err != nil {
		return err
	}
	for _, tenant := range all {
		for _, file := range []string{csvOf(tenant), pageOf(tenant)} {
			if month := look.look(ctx, tenant, file); month != last {
				look.blame("%s: in the end it is of %q, want %s", file, month, last)
			}
		}
	}
	out.Reads, out.Wrong, out.OK = look.reads, look.wrong[:min(len(look.wrong), 20)], len(look.wrong) == 0
	return r.pool.QueryRow(ctx, countsSQL).Scan(&out.Statements, &out.Takeovers, &out.Refusals, &out.Invoices, &out.Cents)
}
