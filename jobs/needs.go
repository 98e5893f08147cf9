package jobs

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"pawl/jobs/schedule"
)

const storedJobsSQL = `select ` + plannedColumns + ` from pawl.schedules where retired_at is null`

// checkNeeds refuses needs that can never be met: a circle, and a job whose periods have other keys. Other processes' jobs
// count as they are stored.
func (r *Runner) checkNeeds(ctx context.Context, mine map[string]Job) error {
	if err := checkRenames(mine); err != nil {
		return err
	}
	all, err := r.definitions(ctx, mine)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(mine)) {
		for _, n := range mine[name].Needs {
			need, known := all[n.Job]
			if !known {
				r.log.WarnContext(ctx, "job needs one that nobody has registered yet: its periods wait for it", "job", name, "needs", n.Job)
				continue
			}
			if all[name].manual() || need.manual() {
				return &ConfigError{name, "Needs", n.Job, "remove it: the keys of a @manual job are made anew each time"}
			}
			if ours, theirs := keysOf(all[name]), keysOf(need); ours != theirs {
				return &ConfigError{name, "Needs", n.Job, fmt.Sprintf("need a job with the same kind of period: this one's is %s, that one's %s", ours, theirs)}
			}
		}
		if c := circle(all, name, nil); c != nil {
			return &ConfigError{name, "Needs", c[1], "remove one: each waits for the next, " + strings.Join(c, " → ")}
		}
	}
	return nil
}

// definitions are our jobs and all others that are stored.
func (r *Runner) definitions(ctx context.Context, mine map[string]Job) (map[string]definition, error) {
	rows, err := r.pool.Query(ctx, storedJobsSQL)
	if err != nil {
		return nil, err
	}
	stored, err := pgx.CollectRows(rows, scanPlanned)
	all := map[string]definition{}
	for _, p := range stored {
		if p.unreadable == nil {
			all[p.Job] = p.definition
		}
	}
	for name, j := range mine {
		all[name] = j.definition(r.cfg.App)
	}
	return all, err
}

// keysOf is the kind of the job's keys. What can't be read is complained of elsewhere.
func keysOf(d definition) schedule.Kind {
	s, err := d.parse()
	if err != nil {
		return d.Period
	}
	return s.Kind()
}

func (d definition) manual() bool { return strings.TrimSpace(d.Schedule) == "@manual" }

// circle returns the way from a job back to itself along what it needs, or nil.
func circle(all map[string]definition, job string, way []string) []string {
	if i := slices.Index(way, job); i >= 0 {
		return append(slices.Clone(way[i:]), job)
	}
	way = append(slices.Clone(way), job)
	for _, need := range all[job].Needs {
		if c := circle(all, need, way); c != nil {
			return c
		}
	}
	return nil
}
