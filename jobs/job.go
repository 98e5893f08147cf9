package jobs

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"pawl/fence"
	"pawl/jobs/schedule"
)

// Func does the work of one run. Its context ends when the lease can't be trusted any more, when the timeout has
// passed, or when the process shuts down; context.Cause says which. A nil result completes the period. What must
// commit together with the completion goes into [Run.Complete].
type Func func(ctx context.Context, run *Run) error

// NoRetries as MaxRetries means that a period has one run only.
const NoRetries = -1

// NoTimeout as Timeout means that a run may take as long as it renews its lease.
const NoTimeout time.Duration = -1

// Job is what to do and when it is owed. The zero value of a field means its default.
type Job struct {
	Name          string        // ^[a-z][a-z0-9_-]{0,62}$, never renamed
	Schedule      string        // see package schedule: five fields, @every, @daily …, @at, @manual
	Timezone      string        // IANA name; default UTC, never the host's
	Period        schedule.Kind // day, hour, week, month, tick; default inferred from the schedule
	PeriodOffset  int           // -1: the run on the 10th settles the 9th
	TTL           time.Duration // of the lease, 1s to 24h; default 30s, renewed at a third
	Timeout       time.Duration // of one run; default 1h; NoTimeout
	Grace         time.Duration // for the function to return after its context has ended; default Config.Grace
	MaxRetries    int           // runs after the first; default 5; NoRetries
	RetryDelay    time.Duration // before the first retry, doubled each time, with jitter; default 30s
	RetryMaxDelay time.Duration // default 30m
	Lock          string        // default "job:" + Name; two jobs may share one
	CatchUp       schedule.CatchUp
	CatchUpWindow time.Duration  // older ticks are recorded as missed; default see package schedule
	Isolation     pgx.TxIsoLevel // of Run.Tx and Run.Complete: read committed (default), repeatable read, serializable
	Start         time.Time      // ticks after it are owed; default the moment of registration
	Func          Func           // required
}

var jobName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,62}$`)

// withDefaults returns the job as it will run, or the first field that can't be used.
func (j Job) withDefaults() (Job, error) {
	bad := func(field string, value any, fix string) error { return &ConfigError{j.Name, field, value, fix} }
	j.TTL = cmp.Or(j.TTL, 30*time.Second)
	j.Timeout = cmp.Or(j.Timeout, time.Hour)
	j.MaxRetries = cmp.Or(j.MaxRetries, 5)
	j.RetryDelay = cmp.Or(j.RetryDelay, 30*time.Second)
	j.RetryMaxDelay = cmp.Or(j.RetryMaxDelay, max(30*time.Minute, j.RetryDelay))
	j.Lock = cmp.Or(j.Lock, "job:"+j.Name)
	j.Isolation = cmp.Or(j.Isolation, pgx.ReadCommitted)
	switch {
	case !jobName.MatchString(j.Name):
		return j, bad("Name", j.Name, "use a lower-case letter, then up to 62 of a-z, 0-9, _ and -")
	case j.Func == nil:
		return j, bad("Func", nil, "set the function that does the work")
	case j.TTL < time.Second || j.TTL > 24*time.Hour:
		return j, bad("TTL", j.TTL, "use 1s to 24h")
	case j.Timeout < 0 && j.Timeout != NoTimeout:
		return j, bad("Timeout", j.Timeout, "use a positive duration, or NoTimeout")
	case j.Grace < 0:
		return j, bad("Grace", j.Grace, "use a positive duration")
	case j.MaxRetries < NoRetries || j.MaxRetries > 1000:
		return j, bad("MaxRetries", j.MaxRetries, "use 0 to 1000 (0 means 5), or NoRetries")
	case !slices.Contains([]pgx.TxIsoLevel{pgx.ReadCommitted, pgx.RepeatableRead, pgx.Serializable}, j.Isolation):
		return j, bad("Isolation", string(j.Isolation), "use pgx.ReadCommitted, pgx.RepeatableRead or pgx.Serializable")
	case j.RetryDelay < 0 || j.RetryMaxDelay < j.RetryDelay:
		return j, bad("RetryMaxDelay", j.RetryMaxDelay, "use at least RetryDelay, which is positive")
	case !fence.Token{Lock: j.Lock, Seq: 1}.Valid():
		return j, bad("Lock", j.Lock, "use 1 to 255 bytes of UTF-8 without NUL")
	}
	_, err := j.definition("").parse()
	return j, err
}

// runs is how many runs a period may have.
func (j Job) runs() int { return max(j.MaxRetries, 0) + 1 }

// kind is the River kind of the job's deliveries. Only a replica that has the job's function fetches it.
func kind(job string) string { return "pawl." + job }
