package jobs

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"pawl/lockrepo"
)

// Concurrency bounds how many runs work at once: a run whose permits are all held costs no attempt, and is tried again some
// seconds later. Permits are the locks Key#0 to Key#(Limit-1), see [lockrepo.Repo.AcquireSlot]. They bound the load on
// something; what a run writes is fenced by its own lock.
type Concurrency struct {
	Key   string // such as report:{{params.tenant}}; also {{job}}, {{period.key}} and {{shard.key}}
	Limit int    // 1 to 1000; 0 is no limit
}

const (
	permitEvery  = 3 * time.Second            // jittered
	waitsForSlot = "jobs: waits for a slot: " // begins the error of a run that found no permit
)

var placeholder = regexp.MustCompile(`\{\{\s*([^{}]*?)\s*\}\}`)

const ownLocks = "use another name than the job's lock: # and a number behind it are locks of its own shards or periods"

// noPermitError ends a run that may not work yet. The period is owed as before.
type noPermitError struct{ err error }

func (e *noPermitError) Error() string { return waitsForSlot + e.err.Error() }
func (e *noPermitError) Unwrap() error { return e.err }

func (j Job) checkConcurrency() error {
	c := j.Concurrency
	bad := func(field string, value any, fix string) error {
		return &ConfigError{j.Name, "Concurrency." + field, value, fix}
	}
	switch {
	case c == Concurrency{}:
		return nil
	case c.Limit < 1 || c.Limit > 1000:
		return bad("Limit", c.Limit, "use 1 to 1000")
	case c.Key == "" || storable(c.Key) != c.Key || len(c.Key) > 200:
		return bad("Key", c.Key, "name what is limited, in 1 to 200 bytes of UTF-8 without NUL")
	case c.Key == j.Lock && (j.sharded() || j.Overlap == OverlapAllow):
		return bad("Key", c.Key, ownLocks)
	}
	if m := c.Unknown(j.Params, j.sharded()); m != "" {
		return bad("Key", m, "use {{job}}, {{period.key}}, {{shard.key}} of a job with shards, or {{params.NAME}} of a param that the job declares")
	}
	return nil
}

// Unknown returns the first {{…}} of the key that stands for nothing, given the params of a job and whether it has shards; ""
// if there is none.
func (c Concurrency) Unknown(params map[string]Param, sharded bool) string {
	for _, m := range placeholder.FindAllStringSubmatch(c.Key, -1) {
		name, param := strings.CutPrefix(m[1], "params.")
		_, declared := params[name]
		if !(param && declared || m[1] == "job" || m[1] == "period.key" || m[1] == "shard.key" && sharded) {
			return m[0]
		}
	}
	return ""
}

// permitKey is what the run's permits go by.
func (r *Run) permitKey() string {
	return placeholder.ReplaceAllStringFunc(r.job.Concurrency.Key, func(m string) string {
		switch name := placeholder.FindStringSubmatch(m)[1]; name {
		case "job":
			return r.Job
		case "period.key":
			return r.Period.Key
		case "shard.key":
			return r.Shard.Key
		default:
			return r.Params.Text(strings.TrimPrefix(name, "params."))
		}
	})
}

// permitted calls the job's function, with a permit if it needs one. The context ends when that is lost.
func (r *Run) permitted(ctx context.Context) error {
	c := r.job.Concurrency
	if c.Limit == 0 {
		return r.job.Func(ctx, r)
	}
	key := r.permitKey()
	if strings.HasPrefix(r.token.Lock, key+"#") { // it would wait for itself, and cost no attempt
		return fmt.Errorf("%w: %w", ErrNoRetry, &ConfigError{r.Job, "Concurrency.Key", key, ownLocks})
	}
	l, err := r.runner.repo.AcquireSlot(ctx, key, c.Limit, r.job.TTL)
	switch {
	case errors.Is(err, lockrepo.ErrHeld):
		return &noPermitError{err}
	case err != nil:
		return fmt.Errorf("jobs: slot of %s %s: %w", r.Job, r.rowKey(), err)
	}
	held, kept := r.runner.repo.Keep(ctx, l)
	defer kept.Stop()
	defer func() { // also when the function panics
		kept.Completing()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
		defer cancel()
		if err := r.runner.repo.Release(ctx, l); err != nil {
			r.Logger().WarnContext(ctx, "slot not released: its lease runs out", "slot", l.Token.Lock, "error", err)
		}
	}()
	return r.job.Func(held, r)
}
