package jobs

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"pawl/jobs/alert"
)

// Check returns the first field of the job that can't be used, as [Runner.Add] does.
func (j Job) Check() error {
	_, err := j.withDefaults()
	return err
}

// setJobs makes all the jobs that this process has. It runs those that are named, and that aren't elsewhere.
func (r *Runner) setJobs(all map[string]Job, names []string) {
	r.changing.Lock()
	defer r.changing.Unlock()
	r.jobs, r.names, r.ttls = all, nil, nil
	for _, name := range names {
		if !all[name].Elsewhere {
			r.names = append(r.names, name)
			r.ttls = append(r.ttls, all[name].TTL.Milliseconds())
		}
	}
}

// Change is what [Runner.Reload] is to do.
type Change struct {
	Set         []Job    // these are added, or take the place of those of the same name
	Keep        []string // these stay as they are, such as those whose new definition is wrong
	AllowRetire int      // as in [Config]

	Channels     []alert.Channel // these take the place of those of before, each by itself; nil: all stay as they are
	KeepChannels []string        // these stay, such as those whose new definition is wrong
}

// Reload changes the jobs of a runner that runs. Each is stored and taken over by itself: the error is an errors.Join of
// one [*JobError] or [*ChannelError] for each that couldn't be, which stays as it was. What is in neither list this process doesn't run any
// more; with Config.WholeApp it is retired, unless that is a [*RetireError]. Runs that are under way end as they began.
func (r *Runner) Reload(ctx context.Context, c Change) error {
	if err := r.Ready(); err != nil {
		return err
	}
	r.reloading.Lock()
	defer r.reloading.Unlock()
	have := r.handled()
	mine := map[string]Job{}
	for _, name := range append(slices.Clone(c.Keep), pruneName) {
		if j, there := have.jobs[name]; there {
			mine[name] = j
		}
	}
	fresh, errs := r.checkChange(ctx, c.Set, mine, have.jobs)
	for _, j := range fresh {
		if err := r.registerJob(ctx, j); err != nil {
			errs = append(errs, &JobError{Job: j.Name, Err: err})
			back(mine, j.Name, have.jobs)
		}
	}
	if r.cfg.WholeApp {
		err := r.retireAbsent(ctx, mine, c.AllowRetire)
		if refused := (*RetireError)(nil); errors.As(err, &refused) {
			for _, name := range refused.Absent {
				back(mine, name, have.jobs)
			}
		}
		errs = append(errs, err)
	}
	errs = append(errs, r.loadNeeds(ctx))
	all := maps.Clone(have.jobs) // a run that was granted a moment ago finds its job still
	maps.Copy(all, mine)
	r.setJobs(all, slices.Sorted(maps.Keys(mine)))
	errs = append(errs, r.reloadChannels(ctx, c)...)
	errs = append(errs, r.clients.set(ctx, r.handled().names, channelNames(r.alerting())))
	r.log.InfoContext(ctx, "jobs reloaded", "jobs", slices.Sorted(maps.Keys(mine)), "channels", channelNames(r.alerting()))
	return errors.Join(errs...)
}

// checkChange puts into mine what can be taken over, and returns that.
func (r *Runner) checkChange(ctx context.Context, set []Job, mine, old map[string]Job) (fresh []Job, errs []error) {
	for _, j := range set {
		good, err := j.withDefaults()
		if err != nil {
			errs = append(errs, &JobError{Job: j.Name, Err: err})
			back(mine, j.Name, old)
			continue
		}
		mine[j.Name] = good
		fresh = append(fresh, good)
	}
	for range set { // one that is taken out may have been another's need
		err := r.checkNeeds(ctx, mine)
		var bad *ConfigError
		if !errors.As(err, &bad) {
			if err != nil {
				errs = append(errs, err)
			}
			break
		}
		errs = append(errs, &JobError{Job: bad.Job, Err: err})
		back(mine, bad.Job, old)
		fresh = slices.DeleteFunc(fresh, func(j Job) bool { return j.Name == bad.Job })
	}
	return fresh, errs
}

// back keeps the old version of a job, if there is one.
func back(mine map[string]Job, name string, old map[string]Job) {
	delete(mine, name)
	if j, there := old[name]; there {
		mine[name] = j
	}
}

// Store stores the definitions of the runner's jobs, as Run does when it begins, and runs nothing. It retires nothing.
func (r *Runner) Store(ctx context.Context) error {
	if r.running.Swap(true) {
		return errRanTwice
	}
	r.pool = r.cfg.Pool
	r.cfg.WholeApp = false
	return r.register(ctx)
}

var errRanTwice = errors.New("jobs: Run was called twice: make a runner for each")

const idleSQL = `
select not exists (select from pawl.schedules where retired_at is null and next_at <= $2::timestamptz and job = any ($1::text[]))
   and not exists (select from pawl.periods p where p.ended_at is null and p.state in ('open', 'running') and p.job = any ($1::text[])
                      and p.scheduled_at <= $2::timestamptz
                      and (p.waits is null or p.waits = 'needs' and pawl.waits_for(p.job, p.key, p.scheduled_at, p.origin) is null))`

// Idle reports whether nothing is left of what was owed or due at a moment, by the database's clock, of the jobs that this
// process runs. What waits for a person, for another job or for the end of a pause isn't owed yet; what waits for its next
// run is.
func (r *Runner) Idle(ctx context.Context, asOf time.Time) (idle bool, err error) {
	if err := r.Ready(); err != nil {
		return false, nil //nolint:nilerr // it hasn't begun
	}
	err = r.pool.QueryRow(ctx, idleSQL, r.handled().names, asOf).Scan(&idle)
	return idle, err
}
