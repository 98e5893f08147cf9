package jobfile

import (
	"time"

	"pawl/jobs/schedule"
)

// NoTimeout as a timeout means that a run may take as long as it renews its lease. In
// the file it is written "none".
const NoTimeout time.Duration = -1

// File is a job file as it was read, with every default filled in.
//
// The tags of this package's structs are the format: yaml is the field's name, with
// "required" where it must be there; default is a value in YAML, unset says in words what
// leaving it out means; enum (separated by spaces), min, max and pattern are what their
// names say; doc is its meaning; text says what a [Text] may hold.
type File struct {
	Version   int                 `yaml:"version,required" min:"1" max:"1" doc:"The version of this format."`
	App       string              `yaml:"app" default:"default" pattern:"^[a-z][a-z0-9_-]{0,62}$" doc:"Whose jobs these are. A file adds, edits and retires only the jobs of its own app."`
	Defaults  Defaults            `yaml:"defaults" doc:"What a job of this file has where it doesn't say otherwise."`
	Channels  map[string]Channel  `yaml:"channels" doc:"Where alerts go, by name."`
	Databases map[string]Database `yaml:"databases" doc:"Databases of sql jobs, by name, besides pawl: the fenced one that serve is connected to."`
	Jobs      []Job               `yaml:"jobs,required" doc:"The jobs."`

	name string
}

// Defaults are a file's own defaults of some of its jobs' fields. Zero fields were not set.
type Defaults struct {
	Timezone  string        `yaml:"timezone" doc:"Default of a job's timezone."`
	Timeout   time.Duration `yaml:"timeout" min:"1s" none:"true" doc:"Default of a job's timeout."`
	Grace     time.Duration `yaml:"grace" min:"1s" max:"1d" doc:"Default of a job's grace."`
	TTL       time.Duration `yaml:"ttl" min:"1s" max:"1d" doc:"Default of a job's ttl."`
	LateAfter time.Duration `yaml:"late_after" min:"1s" doc:"Default of a job's late_after."`
	Retries   Retries       `yaml:"retries" doc:"Default of a job's retries, field by field."`
	OnDead    string        `yaml:"on_dead" enum:"alert pause hold_next" doc:"Default of a job's on_dead."`
	Owner     string        `yaml:"owner" doc:"Default of a job's owner."`
	Alerts    []string      `yaml:"alerts" doc:"Default of a job's alerts."`
	Retention Retention     `yaml:"retention" doc:"Default of a job's retention, field by field."`
}

// Channel is a webhook that is told of events.
type Channel struct {
	Webhook Text     `yaml:"webhook,required" text:"secrets" doc:"The http or https URL that gets the alerts."`
	Secret  Text     `yaml:"secret" text:"secrets" doc:"Signs the body with HMAC-SHA-256."`
	On      []string `yaml:"on" default:"[dead, missed, late, overdue, at_risk, stale_claim, refusal, stuck, uncertain, unmatched, timeout, unclaimed]" enum:"dead missed late overdue at_risk stale_claim refusal stuck uncertain unmatched timeout unclaimed" doc:"The events that it gets."`

	// Broken says that an error was found in this channel. A reload keeps its old version.
	Broken bool `yaml:"-"`
}

// Database is a database of sql jobs that is not the fenced one.
type Database struct {
	URL Text `yaml:"url,required" text:"secrets" doc:"Its connection string."`
}

// Job is one job: what to do and when it is owed.
type Job struct {
	Name       string `yaml:"name,required" pattern:"^[a-z][a-z0-9_-]{0,62}$" doc:"Names the job: its periods are known by it. To change it see rename_from."`
	RenameFrom string `yaml:"rename_from" pattern:"^[a-z][a-z0-9_-]{0,62}$" doc:"The name that the job had before: its watermark, pause, lock and history go on under the new one."`
	Kind       string `yaml:"kind,required" enum:"command sql http reconcile go" doc:"What the job is. The block of that name must follow, and no other."`
	Owner      string `yaml:"owner" doc:"The team to ask; shown on the page, in alerts and on the lock."`

	Schedule     string        `yaml:"schedule,required" doc:"Five cron fields, @hourly to @yearly, @every D, @at 2026-09-16T02:15 or @manual."`
	Seconds      bool          `yaml:"seconds" default:"false" doc:"The schedule has six fields, of which the first is seconds."`
	Timezone     string        `yaml:"timezone" default:"UTC" doc:"An IANA name, never the host's zone."`
	DayMatch     string        `yaml:"day_match" enum:"or and" doc:"Needed where day-of-month and day-of-week are both set: whether either is enough or both must match."`
	DST          DST           `yaml:"dst" doc:"What fixed hours do when the clocks change."`
	Offset       time.Duration `yaml:"offset" default:"0s" min:"0s" doc:"Moves the ticks of @every D away from the Unix epoch; less than D."`
	Period       schedule.Kind `yaml:"period" unset:"inferred from the schedule" enum:"day hour week month tick" doc:"What one tick owes."`
	PeriodOffset int           `yaml:"period_offset" default:"0" min:"-366" max:"366" doc:"With -1 the run on the 10th settles the 9th."`
	Start        string        `yaml:"start" unset:"the moment of registration" doc:"Ticks from this date, local time or RFC 3339 instant on are owed."`
	Jitter       time.Duration `yaml:"jitter" default:"0s" min:"0s" max:"1d" doc:"Runs start up to this much later, always equally late for one period. It never alters the period."`

	CatchUp       schedule.CatchUp `yaml:"catch_up" unset:"all for a day and longer, latest for shorter" enum:"none latest all" doc:"Which ticks that passed while nobody planned are still owed, oldest first."`
	CatchUpWindow time.Duration    `yaml:"catch_up_window" unset:"7d (or the longest gap + 7d) for a day and longer, 24h for shorter" min:"1s" doc:"How old a tick may be and still be owed. Older ones are missed."`
	CatchUpMax    int              `yaml:"catch_up_max" default:"50" min:"1" max:"10000" doc:"How many ticks one planning pass takes up."`
	Overlap       string           `yaml:"overlap" default:"queue" enum:"queue skip allow" doc:"A period that is due while another runs waits its turn, is skipped, or runs beside it under a lock of its own."`
	StartWithin   time.Duration    `yaml:"start_within" unset:"no limit" min:"1s" doc:"A period that could not start this soon after its time is missed: for work that is wrong when late."`
	LateAfter     time.Duration    `yaml:"late_after" unset:"10m, or half the period if that is less" min:"1s" doc:"Alerts when a period has not started this long after its time."`
	DueBy         string           `yaml:"due_by" unset:"no limit" pattern:"^[0-2][0-9]:[0-5][0-9](\\+[1-3]?[0-9]d)?$" doc:"Alerts when a period is not complete by this wall time of the tick's date; +1d is the day after."`
	Needs         []Need           `yaml:"needs" doc:"Waits until these jobs' periods with the same key are complete."`

	Lock        string        `yaml:"lock" unset:"job:<name>" doc:"The lock that its periods run under, one at a time; two jobs may share one."`
	TTL         time.Duration `yaml:"ttl" default:"30s" min:"1s" max:"1d" doc:"How long a lease lives without a heartbeat, which is sent at a third of it."`
	Timeout     time.Duration `yaml:"timeout" default:"1h" min:"1s" none:"true" doc:"How long one run may take; none must be written."`
	Grace       time.Duration `yaml:"grace" default:"30s" min:"1s" max:"1d" doc:"How long a run that was told to stop may go on before its token is revoked."`
	Retries     Retries       `yaml:"retries" doc:"Runs after the first. Errors and crashes count, drains don't."`
	Concurrency Concurrency   `yaml:"concurrency" doc:"How many runs may work at once on what a key names, of all jobs that write the same key."`
	Shards      *Shards       `yaml:"shards" doc:"Parts each period among so many runs, which work at once, each under a lock of its own: a number, a list of keys, or a statement that lists them."`
	Reduce      *Reduce       `yaml:"reduce" doc:"With shards: SQL that completes the period once all of them are complete."`
	OnDead      string        `yaml:"on_dead" default:"alert" enum:"alert pause hold_next" doc:"When a period has used up its runs: only alert, pause the job, or hold its next periods (for chained settlements)."`

	Alerts    []string         `yaml:"alerts" doc:"The channels that are told of its events."`
	Retention Retention        `yaml:"retention" doc:"How long its history is kept after its end. The job pawl-prune deletes it once a day."`
	Params    map[string]Param `yaml:"params" doc:"Values that a trigger may set, for {{params.NAME}}."`

	SQL       *SQL       `yaml:"sql" doc:"A job of kind sql: statements in a database."`
	Command   *Command   `yaml:"command" doc:"A job of kind command: a program of this machine."`
	HTTP      *HTTP      `yaml:"http" doc:"A job of kind http: one request."`
	Reconcile *Reconcile `yaml:"reconcile" doc:"A job of kind reconcile: compares what an http or go job has done with what the other side says it got."`

	Go *Go `yaml:"go" doc:"A job of kind go: a function of the binary that runs it."`

	// Due is DueBy, parsed.
	Due schedule.DueBy `yaml:"-"`
	// StartAt is Start as an instant; zero when it is the moment of registration.
	StartAt time.Time `yaml:"-"`
	// Times is the parsed schedule. It is of no use when the job is broken. Where LateAfter
	// is 0, its own LateAfter counts.
	Times schedule.Schedule `yaml:"-"`
	// Broken says that an error was found in this job. A reload keeps its old version.
	Broken bool `yaml:"-"`

	at mark // of the schedule
}

// DST says what fixed hours do when the clocks change.
type DST struct {
	Gap     string `yaml:"gap" default:"after" enum:"after skip" doc:"A wall time that does not exist runs at the first instant after the gap, or not at all."`
	Overlap string `yaml:"overlap" default:"first" enum:"first second both" doc:"Which pass of a repeated wall time runs."`
}

// Retries bounds the runs of one period.
type Retries struct {
	Max      int           `yaml:"max" default:"5" min:"0" max:"1000" doc:"How many runs may follow the first."`
	MinDelay time.Duration `yaml:"min_delay" default:"30s" min:"1s" doc:"Before the first retry; doubled each time, with jitter."`
	MaxDelay time.Duration `yaml:"max_delay" default:"30m" min:"1s" doc:"The longest wait between two runs."`
}

// Concurrency bounds the runs that work at once.
type Concurrency struct {
	Key   Text `yaml:"key,required" text:"both" doc:"What is limited, such as report:{{params.tenant}}. Of the values only params, period.key and, in a job with shards, shard.key can be used. Its permits are the locks KEY#0, KEY#1 and so on."`
	Limit int  `yaml:"limit,required" min:"1" max:"1000" doc:"How many permits there are. A run that finds none is tried again some seconds later, which costs no attempt."`
}

// Need is another job whose period must be complete first.
type Need struct {
	Job string `yaml:"job,required" doc:"The other job, of this file and with the same kind of period."`
}

// Retention says how long history is kept.
type Retention struct {
	Runs   time.Duration `yaml:"runs" default:"90d" min:"1d" max:"36500d" doc:"How long runs are kept. At least a day: whoever does not know how a run has ended asks its row."`
	Output time.Duration `yaml:"output" default:"14d" min:"1h" max:"36500d" doc:"How long their output is kept: at most as long as they are, since it is found by its run."`
}

// Param is a declared value. Default and Enum hold string, int64, float64 or bool, as
// Type says.
type Param struct {
	Type    string `yaml:"type,required" enum:"string int number bool" doc:"What its values are."`
	Default any    `yaml:"default" scalar:"true" doc:"Its value where none is given. Only an @manual job may do without."`
	Enum    []any  `yaml:"enum" scalar:"true" unset:"any value of the type" doc:"The only values that it may have."`
}
