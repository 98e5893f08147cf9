package jobs

import (
	"cmp"
	"time"
)

const (
	keepRuns   = 90 * 24 * time.Hour
	keepOutput = 14 * 24 * time.Hour

	// A run's row is what a process asks that doesn't know what became of it: a missing one means that a failover has lost it.
	// A day is longer than any of them asks.
	leastKeepRuns   = 24 * time.Hour
	leastKeepOutput = time.Hour
	mostKeep        = 36500 * 24 * time.Hour // a timestamp so long ago is still one
)

// Retention is how long a job's history is kept after its end, by the database's clock; the job pawl-prune deletes what is
// older once a day. Periods of a day and longer are kept for ever, whatever it says.
type Retention struct {
	Runs   time.Duration // 24h to 36500 days; default 90 days
	Output time.Duration // of runs, 1h to Runs; default 14 days, or Runs if that is less
}

// runs and output are what counts.
func (k Retention) runs() time.Duration { return cmp.Or(k.Runs, keepRuns) }

func (k Retention) output() time.Duration {
	return min(cmp.Or(k.Output, keepOutput), k.runs())
}

func (j Job) checkRetention() error {
	bad := func(field string, value time.Duration, fix string) error {
		return &ConfigError{j.Name, field, value, fix}
	}
	k := j.Retention
	switch {
	case k.Runs != 0 && (k.Runs < leastKeepRuns || k.Runs > mostKeep):
		return bad("Retention.Runs", k.Runs, "use 24h to 36500 days: whoever doesn't know how a run has ended asks its row")
	case k.Output != 0 && k.Output < leastKeepOutput:
		return bad("Retention.Output", k.Output, "use at least 1h")
	case k.Output > k.runs():
		return bad("Retention.Output", k.Output, "use at most Retention.Runs, which is "+k.runs().String()+": output is found by its run")
	}
	return nil
}
