package jobs

import (
	"context"
	"errors"
	"maps"
	"slices"
)

// Check returns the first field of the job that can't be used, as [Runner.Add] does.
func (j Job) Check() error {
	_, err := j.withDefaults()
	return err
}

// setJobs makes all the jobs that this process has, of which it stores and runs those that are named.
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
	Set    []Job    // added, or put in place of those of the same name
	Keep   []string // that stay as they are, such as those whose new definition is wrong
	Allow  int      // how many may be retired where that would be refused, see Config.AllowRetire
	Retire bool     // the app's jobs that are in neither are retired, also those that other processes have stored
}

// Reload changes the jobs of a runner that runs. Each is stored and taken over by itself: the error is an errors.Join of
// one [*JobError] for each that could not be, which stays as it was. Runs that are under way end as they began.
func (r *Runner) Reload(ctx context.Context, c Change) error {
	if !r.started.Load() || r.draining.Load() {
		return r.Ready()
	}
	r.reloading.Lock()
	defer r.reloading.Unlock()
	have := r.handled()
	all := maps.Clone(have.jobs)
	var errs []error
	names := slices.Clone(c.Keep)
	for _, j := range c.Set {
		names = append(names, j.Name)
		j, err := j.withDefaults()
		if err == nil {
			err = r.registerJob(ctx, j)
		}
		if err != nil {
			errs = append(errs, &JobError{Job: j.Name, Err: err})
			continue
		}
		all[j.Name] = j
	}
	slices.Sort(names)
	names = slices.DeleteFunc(slices.Compact(names), func(name string) bool { _, there := all[name]; return !there })
	r.setJobs(all, names)
	errs = append(errs, r.clients.set(ctx, r.handled().names))
	r.log.InfoContext(ctx, "jobs reloaded", "jobs", names)
	return errors.Join(errs...)
}
