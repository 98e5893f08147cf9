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

// What a job does with a tick while another of its periods runs or waits.
const (
	OverlapQueue = "queue" // one period at a time, oldest first
	OverlapSkip  = "skip"  // the tick is skipped, and its row says what blocked it
	OverlapAllow = "allow" // each period has a lock of its own: Lock, # and the period's key
)

// What a job does when no run of a period is left.
const (
	OnDeadAlert    = "alert"     // nothing but the alert: the next period runs
	OnDeadPause    = "pause"     // the job is paused
	OnDeadHoldNext = "hold_next" // later periods wait until the dead one is retried and complete, or cancelled
)

// DST says what a fixed hour does at a change of clocks, see [schedule.Spec].
type DST struct {
	Gap     string // after (default), skip
	Overlap string // first (default), second, both
}

// Need is a job whose period with the same key must be complete before a period may run.
type Need struct{ Job string }

// Job is what to do and when it is owed. The zero value of a field means its default.
type Job struct {
	Name          string        // ^[a-z][a-z0-9_-]{0,62}$; its periods are known by it
	RenameFrom    string        // the name that the job had: all that is stored under it goes on under Name, see docs/jobfile.md
	Kind          string        // for people: command, sql, http, reconcile or "", which is Go
	Badge         string        // how its work is fenced, in words, for people
	Owner         string        // the team that is asked about it; shown on page, alert and lock
	Schedule      string        // see package schedule: five fields, @every, @daily …, @at, @manual
	Seconds       bool          // Schedule has six fields, of which the first is seconds
	Timezone      string        // IANA name; default UTC, never the host's
	DST           DST           // what a fixed hour does at a change of clocks
	DayMatch      string        // or, and: required when day-of-month and day-of-week are both set
	Period        schedule.Kind // day, hour, week, month, tick; default inferred from the schedule
	PeriodOffset  int           // -1: the run on the 10th settles the 9th
	EveryOffset   time.Duration // moves the ticks of @every away from the Unix epoch
	Jitter        time.Duration // a period starts up to that much after its tick, by a hash of job and period; default 0
	TTL           time.Duration // of the lease, 1s to 24h; default 30s, renewed at a third
	Timeout       time.Duration // of one run; default 1h; NoTimeout
	Grace         time.Duration // for the function to return after its context has ended; default Config.Grace
	MaxRetries    int           // runs after the first; default 5; NoRetries
	RetryDelay    time.Duration // before the first retry, doubled each time, with jitter; default 30s
	RetryMaxDelay time.Duration // default 30m
	Lock          string        // default "job:" + Name, of a renamed job its first one; two jobs may share one
	CatchUp       schedule.CatchUp
	CatchUpWindow time.Duration    // older ticks are recorded as missed; default see package schedule
	CatchUpMax    int              // ticks that one pass of the planner owes, 1 to 10000; default 50
	Overlap       string           // OverlapQueue (default), OverlapSkip, OverlapAllow
	StartWithin   time.Duration    // a period that hasn't started so long after its tick is missed (too_late); default no limit
	LateAfter     time.Duration    // a period that hasn't started so long after tick and jitter is late; default see [schedule.Schedule.LateAfter]
	DueBy         string           // "06:00", "06:00+1d": local time by which a period must be complete, or it is overdue; default none
	OnDead        string           // OnDeadAlert (default), OnDeadPause, OnDeadHoldNext
	Sends         []string         // what it sends to others, for people, such as POST https://bank.example/; no secrets
	Params        map[string]Param // values that a trigger, a backfill or a rerun may give: see Run.Params
	Needs         []Need           // jobs whose period of the same key must be complete first
	Isolation     pgx.TxIsoLevel   // of Run.Tx and Run.Complete: read committed (default), repeatable read, serializable
	Retention     Retention        // how long its history is kept
	Start         time.Time        // ticks after it are owed; default the moment of registration
	Alerts        []string         // the channels of its app that are told of its events; nil: all, empty: none
	Elsewhere     bool             // its function is in other processes: this one stores the definition, and never runs it
	Concurrency   Concurrency      // how many runs may work at once on what its key names, of all jobs that name it; default no limit
	Shards        int              // a period's work is parted into so many, 1 to 10000, each run by Func under a lock of its own: see Run.Shard; default 0, none
	ShardKeys     ShardKeys        // or lists their keys for each period, such as its tenants
	ShardsBy      string           // how ShardKeys lists them, for people: a difference of it is one of the definition
	Reduce        Reduce           // with shards: writes what completes the period when all of them are complete; default nothing
	Func          Func             // required, unless it is Elsewhere

	app    string // of a job of pawl's own
	outbox bool   // see Outbox
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
	j.Lock = cmp.Or(j.Lock, lockOfJob(j.Name))
	j.Isolation = cmp.Or(j.Isolation, pgx.ReadCommitted)
	j.Overlap = cmp.Or(j.Overlap, OverlapQueue)
	j.OnDead = cmp.Or(j.OnDead, OnDeadAlert)
	switch {
	case !jobName.MatchString(j.Name):
		return j, bad("Name", j.Name, "use a lower-case letter, then up to 62 of a-z, 0-9, _ and -")
	case j.RenameFrom != "" && (!jobName.MatchString(j.RenameFrom) || j.RenameFrom == j.Name || j.RenameFrom == pruneName):
		return j, bad("RenameFrom", j.RenameFrom, "use the name that the job had before, or leave it out")
	case j.Func == nil && !j.Elsewhere:
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
	case !slices.Contains([]string{OverlapQueue, OverlapSkip, OverlapAllow}, j.Overlap):
		return j, bad("Overlap", j.Overlap, "use queue, skip or allow")
	case !slices.Contains([]string{OnDeadAlert, OnDeadPause, OnDeadHoldNext}, j.OnDead):
		return j, bad("OnDead", j.OnDead, "use alert, pause or hold_next")
	case j.Overlap == OverlapAllow && j.OnDead == OnDeadHoldNext && !j.outbox:
		return j, bad("OnDead", j.OnDead, "use alert or pause: with Overlap allow no period comes before another")
	case j.Overlap == OverlapAllow && len(j.Lock) > 255-mostKey:
		return j, bad("Lock", j.Lock, "use at most 224 bytes: with Overlap allow the period's key is added")
	case j.LateAfter < 0:
		return j, bad("LateAfter", j.LateAfter, "use a positive duration, or 0 for the default")
	case storable(j.Owner) != j.Owner:
		return j, bad("Owner", j.Owner, "use UTF-8 without NUL")
	}
	if err := j.checkRetention(); err != nil {
		return j, err
	}
	if err := j.checkNeeds(); err != nil {
		return j, err
	}
	if err := j.checkShards(); err != nil {
		return j, err
	}
	if err := j.checkParams(); err != nil {
		return j, err
	}
	if err := j.checkConcurrency(); err != nil {
		return j, err
	}
	_, err := j.definition("").parse()
	return j, err
}

const mostKey = 31 // bytes of # and a period's key, with room

func (j Job) checkNeeds() error {
	seen := map[string]bool{}
	for _, n := range j.Needs {
		fix := ""
		switch {
		case !jobName.MatchString(n.Job):
			fix = "give the name of another job"
		case n.Job == j.Name:
			fix = "remove it: a job can't wait for itself"
		case seen[n.Job]:
			fix = "name it once"
		}
		if fix != "" {
			return &ConfigError{j.Name, "Needs", n.Job, fix}
		}
		seen[n.Job] = true
	}
	return nil
}

func lockOfJob(name string) string { return "job:" + name }

// runs is how many runs a period may have.
func (j Job) runs() int { return max(j.MaxRetries, 0) + 1 }

// kind is the River kind of the job's deliveries. Only a replica that has the job's function fetches it.
func kind(job string) string { return "pawl." + job }
