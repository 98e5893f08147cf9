package jobs

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// mostTold is how many of a kind are told one by one.
const mostTold = 10

// whyShard is a shard that is dead.
type whyShard struct {
	Shard, Reason, Error  string
	Attempts, MaxAttempts int
}

const (
	whyShardCountsSQL = `
select count(*) filter (where state in ('complete', 'skipped')) as complete, count(*) filter (where state = 'skipped') as skipped,
       count(*) filter (where state = 'running') as running, count(*) filter (where state = 'open') as open,
       count(*) filter (where state = 'dead') as dead, count(*) filter (where state = 'cancelled') as cancelled, count(*) as all
  from pawl.periods where job = @job and parent = @key and revision = @revision`

	whyDeadShardsSQL = `
select s.shard, coalesce(s.reason, '') as reason, coalesce(r.error, '') as error, s.attempts::int, s.max_attempts::int
  from pawl.periods s left join pawl.runs r on r.id = s.run
 where s.job = @job and s.parent = @key and s.revision = @revision and s.state = 'dead' order by s.reason = 'uncertain' desc, s.shard_no limit @most`

	// Of many shards few have had trouble: those are told.
	whyShardRunsSQL = `
select r.id::text as id, s.shard, r.revision, r.attempt::int, r.state, coalesce(r.holder, '') as holder, coalesce(r.error, '') as error, r.token, r.started_at, r.ended_at
  from pawl.periods s join pawl.runs r on r.job = s.job and r.key = s.key and r.revision = s.revision
 where s.job = @job and s.parent = @key and (s.attempts > 1 or s.state = 'dead') and r.ended_at is not null and r.state not in ('complete', 'skipped', 'drained')
 order by r.started_at desc limit @most`
)

// shardRuns are the latest runs of a period's shards that have come to nothing.
func (t *teller) shardRuns(last whyPeriod) (line []moment, err error) {
	if last.Parent != "" {
		return nil, nil
	}
	runs, err := ask[whyRun](t, whyShardRunsSQL, pgx.NamedArgs{"most": 2 * mostTold})
	if err != nil {
		return nil, err
	}
	for _, r := range slices.Backward(runs) {
		line = append(line, moment{at: r.StartedAt, text: r.sentence(fmt.Sprintf("Run %d of shard %s", r.Attempt, r.Shard), ran(r.State))})
	}
	if len(runs) == 2*mostTold {
		line[0].text = fmt.Sprintf("Of its shards' runs that came to nothing, the last %d are told here; all: pawl job history %s --state failed. ", len(runs), t.job) + line[0].text
	}
	return line, nil
}

// opened reports whether a complete run of a period with shards has listed or opened them. The other one has completed the period.
func (r whyRun) opened(x whyPeriod) bool { return x.State != stateComplete || r.ID != x.Run }

// shardsOf tells a complete run of a period with shards. Opening them costs no attempt, so that such a run has no number of its own.
func (x whyPeriod) shardsOf(r whyRun, listed bool) string {
	switch {
	case !r.opened(x):
		return r.sentence(fmt.Sprintf("Run %d", r.Attempt), "completed the period, all shards being complete,")
	case listed:
		return r.sentence("A run", "opened the shards again that were not complete")
	}
	return r.sentence("A run", "listed "+howMany(*x.Shards, "shard"))
}

func howMany(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// shardNo is which of its period's shards a shard is.
func shardNo(x whyPeriod) string {
	if x.ShardNo == nil {
		return "of an unknown place"
	}
	return fmt.Sprintf("number %d from 0", *x.ShardNo)
}

// shards tells how far the shards of a period are, and returns those that are dead.
func (t *teller) shards(x whyPeriod) (dead []whyShard, err error) {
	if x.Shards == nil {
		return nil, nil
	}
	type counts struct{ Complete, Skipped, Running, Open, Dead, Cancelled, All int }
	of := pgx.NamedArgs{"revision": x.Revision, "most": mostTold}
	all, err := ask[counts](t, whyShardCountsSQL, of)
	if err != nil {
		return nil, err
	}
	n := all[0]
	text := fmt.Sprintf("%d of %s are complete", n.Complete, howMany(n.All, "shard"))
	for _, c := range []struct {
		n    int
		what string
	}{{n.Skipped, "of them skipped"}, {n.Running, "running"}, {n.Open, "open"}, {n.Dead, "dead"}, {n.Cancelled, "cancelled"}} {
		if c.n > 0 {
			text += fmt.Sprintf(", %d %s", c.n, c.what)
		}
	}
	t.say("%s.", text)
	if dead, err = ask[whyShard](t, whyDeadShardsSQL, of); err != nil {
		return nil, err
	}
	for _, s := range dead {
		text := fmt.Sprintf("Shard %s is dead after %d of %d runs", s.Shard, s.Attempts, s.MaxAttempts)
		if s.Error != "" {
			text += ": " + firstLine(s.Error)
		}
		t.say("%s.", text)
	}
	if more := n.Dead - len(dead); more > 0 {
		t.say("%d more are dead: pawl job shards %s %s", more, t.job, t.key)
	}
	return dead, nil
}

// again is the command that owes what is dead again: a shard goes with its period.
func (t *teller) again(x whyPeriod) (string, error) {
	retry := fmt.Sprintf("pawl job retry %s %s", t.job, x.whole())
	switch {
	case x.Shards != nil:
		return retry + "; it opens the shards that aren't complete", nil
	case x.Parent == "":
		return retry, nil
	}
	states, err := t.texts(`select state from pawl.periods where job = @job and key = @parent order by revision desc limit 1`, pgx.NamedArgs{"parent": x.Parent})
	switch {
	case err != nil:
		return "", err
	case strings.Join(states, "") == stateDead:
		return retry + ", of the period: its shards follow", nil
	}
	return "when the other shards have ended, and its period is dead, with " + retry, nil
}
