package jobfile

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/jobs"
	"pawl/jobs/alert"
	"pawl/jobs/kinds"
)

// Host is what a process has that runs the jobs of a file.
type Host struct {
	Guardian  []string                 // the words after which this binary guards a command, see [kinds.Command]
	Handlers  map[string]jobs.Func     // for jobs of kind go; those that it doesn't have run elsewhere
	Databases map[string]*pgxpool.Pool // by their names in the file
}

// Load returns the job as a runner takes it. The job isn't [Job.Broken]. The error says which of its fields can't be used.
func (j *Job) Load(h Host) (jobs.Job, error) {
	out := j.plain()
	var badge interface{ Badge() string }
	var err error
	switch {
	case j.SQL != nil:
		sql := j.sql(h)
		badge, out.Isolation = sql, sql.Isolation
		out.Func, err = sql.Func()
	case j.Command != nil:
		command := j.command(h)
		badge = command
		out.Func, err = command.Func()
	case j.HTTP != nil:
		http := j.http()
		badge = http
		out.Sends = []string{j.HTTP.Method + " " + withoutPassword(j.HTTP.URL.String())}
		out.Func, err = http.Func()
	case j.Reconcile != nil:
		reconcile := j.reconcile(h)
		badge = reconcile
		out.Func, err = reconcile.Func()
	case j.Go != nil:
		out.Func = h.Handlers[j.Go.Handler]
		out.Elsewhere = out.Func == nil
	}
	if badge != nil {
		out.Kind, out.Badge = j.Kind, badge.Badge()
	}
	if err != nil {
		return out, fmt.Errorf("%s.%s: %w", j.Name, j.Kind, err)
	}
	if err := j.part(&out, h); err != nil {
		return out, fmt.Errorf("%s.%w", j.Name, err)
	}
	return out, out.Check()
}

var passwordInURL = regexp.MustCompile(`://[^/?#]*@`)

// withoutPassword is an URL as it was written, without who calls.
func withoutPassword(written string) string { return passwordInURL.ReplaceAllString(written, "://") }

// Alerting is the file's channels as a runner takes them, by name, with their secrets, but for those that are broken.
func (f *File) Alerting() (channels []alert.Channel) {
	for _, name := range keys(f.Channels) {
		c := f.Channels[name]
		if c.Broken {
			continue
		}
		channels = append(channels, alert.Channel{Name: name, URL: c.Webhook.Expand(nil), Secret: c.Secret.Expand(nil), On: c.On})
	}
	return channels
}

// plain is everything but what is done.
func (j *Job) plain() jobs.Job {
	out := jobs.Job{
		Name: j.Name, RenameFrom: j.RenameFrom, Owner: j.Owner,
		Schedule: j.Schedule, Seconds: j.Seconds, Timezone: j.Timezone, DST: jobs.DST(j.DST), DayMatch: j.DayMatch,
		Period: j.Period, PeriodOffset: j.PeriodOffset, EveryOffset: j.Offset, Jitter: j.Jitter,
		TTL: j.TTL, Timeout: j.Timeout, Grace: j.Grace, Lock: j.Lock,
		MaxRetries: cmp.Or(j.Retries.Max, jobs.NoRetries), RetryDelay: j.Retries.MinDelay, RetryMaxDelay: j.Retries.MaxDelay,
		CatchUp: j.CatchUp, CatchUpWindow: j.CatchUpWindow, CatchUpMax: j.CatchUpMax,
		Alerts: j.Alerts, Overlap: j.Overlap, StartWithin: j.StartWithin, LateAfter: j.LateAfter, DueBy: j.DueBy, OnDead: j.OnDead,
		Retention: jobs.Retention(j.Retention), Concurrency: j.concurrency(),
		Params: j.params(),
	}
	if j.Timeout == NoTimeout {
		out.Timeout = jobs.NoTimeout
	}
	if !j.StartAt.IsZero() { // from then on, not only after it
		out.Start = j.StartAt.Add(-time.Microsecond)
	}
	for _, n := range j.Needs {
		out.Needs = append(out.Needs, jobs.Need(n))
	}
	return out
}

func (j *Job) concurrency() jobs.Concurrency {
	return jobs.Concurrency{Key: j.Concurrency.Key.String(), Limit: j.Concurrency.Limit}
}

func (j *Job) sql(h Host) kinds.SQL {
	s := j.SQL
	out := kinds.SQL{
		Text: s.Text, Args: s.Args, Transaction: s.Transaction, Expect: kinds.Rows(s.Expect.Rows),
		Isolation: map[string]pgx.TxIsoLevel{"repeatable_read": pgx.RepeatableRead}[s.Isolation],
	}
	out.Isolation = cmp.Or(out.Isolation, pgx.ReadCommitted)
	out.Database = h.database(s.Database)
	return out
}

// database is one of the file's own, nil for pawl's.
func (h Host) database(name string) *pgxpool.Pool {
	if name == "" || name == "pawl" {
		return nil
	}
	return h.Databases[name]
}

// Databases are the names of those of the file's own databases that the job uses.
func (j *Job) Databases() (names []string) {
	if j.SQL != nil {
		names = append(names, j.SQL.Database)
	}
	if j.Reconcile != nil && j.Reconcile.SQL != nil {
		names = append(names, j.Reconcile.SQL.Database)
	}
	if j.Shards != nil {
		names = append(names, j.Shards.Database)
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "" || name == "pawl" })
}

func (j *Job) command(h Host) kinds.Command {
	c := j.Command
	out := kinds.Command{
		Guardian: h.Guardian, Shell: c.Shell, Dir: c.Dir, Env: texts(c.Env), InheritEnv: c.InheritEnv, Grace: c.Grace, OnDrain: c.OnDrain,
		Output: kinds.Capture{Max: int64(c.Output.Max), Keep: c.Output.Keep, Progress: c.Output.Progress},
		Exit:   c.Exit,
	}
	for _, arg := range c.Argv {
		out.Argv = append(out.Argv, arg)
	}
	return out
}

func (j *Job) http() kinds.HTTP {
	h := j.HTTP
	out := kinds.HTTP{
		Method: h.Method, URL: h.URL, Headers: texts(h.Headers), Body: kinds.Body{JSON: h.Body.JSON},
		Expect:  h.Expect.answer(),
		RetryOn: []string{}, OnTimeout: h.OnTimeout, MaxResponse: int64(h.MaxResponse),
		KeyLifetime: h.KeyLifetime, ValidFor: h.ValidFor,
	}
	if h.KeyLifetime == NoTimeout {
		out.KeyLifetime = jobs.NoKeys
	}
	if p := h.Probe; p != nil {
		out.Probe = &kinds.Probe{Method: p.Method, URL: p.URL, Headers: texts(p.Headers), Expect: p.Expect.answer(), Absent: p.Absent}
	}
	if !h.Body.Text.IsZero() {
		out.Body.Text = h.Body.Text
	}
	for _, cause := range h.RetryOn {
		out.RetryOn = append(out.RetryOn, string(cause))
	}
	return out
}

func (n HTTPNeed) answer() kinds.Answer {
	return kinds.Answer{Status: n.Status, Pointer: n.JSON.Pointer, Equals: n.JSON.Equals}
}

func texts(m map[string]Text) map[string]kinds.Text {
	out := make(map[string]kinds.Text, len(m))
	for name, t := range m {
		out[name] = t
	}
	return out
}

// params are those that the file declares.
func (j *Job) params() map[string]jobs.Param {
	out := make(map[string]jobs.Param, len(j.Params))
	for name, p := range j.Params {
		out[name] = jobs.Param(p)
	}
	return out
}

// checkLoad reports what only those know who run the job.
func (r *reader) checkLoad(job *Job, path string) {
	if r.broken[path] {
		return
	}
	h := Host{Guardian: []string{"guardian"}, Databases: map[string]*pgxpool.Pool{}}
	for _, name := range job.Databases() {
		h.Databases[name] = &pgxpool.Pool{} // only that there is one counts
	}
	_, err := job.Load(h)
	var kind *kinds.ConfigError
	var own *jobs.ConfigError
	switch at := join(path, job.Kind); {
	case err == nil:
	case errors.As(err, &kind):
		r.bad(at, "%s %v: %s.", kind.Field, shown(kind.Value), kind.Fix)
	case errors.As(err, &own):
		r.bad(path, "%s %v: %s.", own.Field, shown(own.Value), own.Fix)
	default:
		r.bad(path, "%s.", err)
	}
}

// shown is a value as people write it.
func shown(v any) any {
	if s, ok := v.(string); ok {
		return fmt.Sprintf("%.60q", s)
	}
	return v
}
