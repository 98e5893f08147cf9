package jobfile

import (
	"fmt"
	"slices"
	"strings"

	"pawl/internal/nearest"
)

// checkNeeds checks that needs name other jobs, whose periods have the same keys, and
// that no job waits for itself.
func (r *reader) checkNeeds(f *File) {
	byName := map[string]int{}
	for i, job := range f.Jobs {
		if _, twice := byName[job.Name]; !twice {
			byName[job.Name] = i
		}
	}
	for i, job := range f.Jobs {
		for n, need := range job.Needs {
			at := fmt.Sprintf("%s.needs[%d]", index(i), n)
			j, there := byName[need.Job]
			switch {
			case need.Job == "":
			case !there:
				r.bad(at, "job %q is not defined.%s", need.Job, nearest.DidYouMean(need.Job, keys(byName)))
			case slices.ContainsFunc(job.Needs[:n], func(o Need) bool { return o.Job == need.Job }):
				r.bad(at, "job %q is needed twice. Remove one.", need.Job)
			case !r.broken[index(i)] && !r.broken[index(j)] && f.Jobs[j].Period != job.Period:
				r.bad(at, "the periods of job %q are of kind %s, this job's %s: their keys never match.", need.Job, f.Jobs[j].Period, job.Period)
			}
		}
	}
	r.checkCycles(f, byName)
}

// checkCycles reports each cycle once, at its first job in the file.
func (r *reader) checkCycles(f *File, byName map[string]int) {
	done := make([]bool, len(f.Jobs))
	var walk func(i int, trail []int)
	walk = func(i int, trail []int) {
		if at := slices.Index(trail, i); at >= 0 {
			r.cycle(f, trail[at:])
			return
		}
		if done[i] {
			return
		}
		for _, need := range f.Jobs[i].Needs {
			if j, there := byName[need.Job]; there {
				walk(j, append(trail, i))
			}
		}
		done[i] = true
	}
	for i := range f.Jobs {
		walk(i, nil)
	}
}

// cycle reports a cycle. All of its jobs are broken, since none could ever run.
func (r *reader) cycle(f *File, jobs []int) {
	var names []string
	for _, i := range append(slices.Clone(jobs), jobs[0]) {
		names = append(names, f.Jobs[i].Name)
		r.broken[index(i)] = true
	}
	r.bad(index(jobs[0])+".needs", "cycle %s.", strings.Join(names, " → "))
}
