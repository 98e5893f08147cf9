package jobfile

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// checkJob checks one job and fills in what its schedule decides.
func (r *reader) checkJob(f *File, job *Job, path string) {
	if job.Lock == "" {
		job.Lock = "job:" + job.Name
	}
	if len(job.Lock) > 255 || !utf8.ValidString(job.Lock) || strings.ContainsRune(job.Lock, 0) {
		r.bad(path+".lock", "is not the name of a lock. Write 1 to 255 bytes of UTF-8 without NUL.")
	}
	if job.Owner == "" && !r.written(path+".owner") {
		r.warn(Warning, path, "has no owner. Write owner: and the team to ask, here or under defaults.")
	}
	r.checkRetention(job, path+".retention")
	r.checkAlerts(f, path, job.Alerts)
	if job.Retries.MaxDelay < job.Retries.MinDelay {
		r.bad(path+".retries", "max_delay is less than min_delay. Write %s or more.", short(job.Retries.MinDelay))
	}
	if job.Retries.Max == 0 && job.OnDead == "hold_next" {
		r.warn(Note, path+".on_dead", "hold_next with retries.max 0: one failure holds the job until somebody acts.")
	}
	r.checkParams(job, path)
	r.checkShards(f, job, path)
	switch c := job.Concurrency; {
	case c.Key.faulty:
	case c.Key.HasSecret():
		r.bad(path+".concurrency.key", "has a secret, which everybody could read. Write the value itself.")
	case job.concurrency().Unknown(job.params(), job.Shards != nil) != "":
		r.bad(path+".concurrency.key", "has {{…}} of what a key can't hold. Write {{period.key}}, {{params.NAME}} or, in a job with shards, {{shard.key}}.")
	case len(c.Key.String()) > 200:
		r.bad(path+".concurrency.key", "is too long. Write at most 200 bytes.")
	}
	r.checkKind(f, job, path)
	r.checkTimes(f, job, path)
}

// checkRetention reports output that nobody could find. One that isn't written is kept no longer than the runs.
func (r *reader) checkRetention(job *Job, path string) {
	k := &job.Retention
	switch {
	case k.Output <= k.Runs || k.Runs == 0:
	case r.written(path + ".output"):
		r.bad(path+".output", "is longer than runs are kept, and output is found by its run. Write %s or less, or more for runs.", short(k.Runs))
	default:
		k.Output = k.Runs
	}
}

// checkParams checks the types of the params' values.
func (r *reader) checkParams(job *Job, path string) {
	for _, name := range keys(job.Params) {
		p, at := job.Params[name], path+".params."+name
		if !paramName.MatchString(name) {
			r.say(Error, r.where(at).key, at, fmt.Sprintf("%q is not a name. Write a lower-case letter, then up to 62 of a-z, 0-9 and _.", name))
		}
		switch {
		case p.Type == "":
			continue
		case p.Default == nil && job.Schedule != "@manual":
			r.bad(at, "has no default, which a scheduled run needs. Write default: and a value.")
		case p.Default != nil && !hasType(p.Default, p.Type):
			r.bad(at+".default", "%v is not of type %s.", p.Default, p.Type)
		case p.Default != nil && len(p.Enum) > 0 && !slices.ContainsFunc(p.Enum, func(v any) bool { return same(v, p.Default) }):
			r.bad(at+".default", "%v is not in enum. Write one of its values.", p.Default)
		}
		for i, v := range p.Enum {
			if !hasType(v, p.Type) {
				r.bad(fmt.Sprintf("%s.enum[%d]", at, i), "%v is not of type %s.", v, p.Type)
			}
		}
	}
}

var paramName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,62}$`)

func hasType(v any, typ string) bool {
	switch v.(type) {
	case string:
		return typ == "string"
	case int64:
		return typ == "int" || typ == "number"
	case float64:
		return typ == "number"
	case bool:
		return typ == "bool"
	}
	return false
}

// same compares two scalars; 1 and 1.0 are the same number.
func same(a, b any) bool { return fmt.Sprint(a) == fmt.Sprint(b) }

// kindNames are the kinds of jobs.
func kindNames() []string { return []string{"command", "sql", "http", "reconcile", "go"} }

// checkKind checks that the job has the one block of its kind, and what is in it.
func (r *reader) checkKind(f *File, job *Job, path string) {
	kinds := kindNames()
	var blocks []string
	for _, k := range kinds {
		if r.written(join(path, k)) {
			blocks = append(blocks, k)
		}
	}
	rule := "Exactly one of " + strings.Join(kinds, ", ") + "."
	if slices.Contains(kinds, job.Kind) && len(blocks) == 0 {
		r.bad(path+".kind", "is %s but there is no block of that name. %s", job.Kind, rule)
	}
	for _, b := range blocks {
		if b != job.Kind && slices.Contains(kinds, job.Kind) {
			r.say(Error, r.where(join(path, b)).key, path, fmt.Sprintf("kind is %s but the block is %s. %s", job.Kind, b, rule))
		}
	}
	if job.SQL != nil {
		r.checkSQL(f, job.SQL, path+".sql")
	}
	if job.Command != nil {
		r.checkCommand(job, job.Command, path+".command")
	}
	if job.HTTP != nil {
		r.checkHTTP(job.HTTP, path+".http")
	}
	if job.Reconcile != nil {
		r.checkReconcile(f, job.Reconcile, path+".reconcile")
	}
	if job.Go != nil && job.Go.Handler == "" {
		job.Go.Handler = job.Name
	}
}

// short returns a duration without zero units, in days where it is whole days.
func short(d time.Duration) string {
	if day := 24 * time.Hour; d > day && d%day == 0 {
		return fmt.Sprintf("%dd", d/day)
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
