package jobs

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"pawl/jobs/schedule"
)

const (
	mostShards   = 10_000
	mostShardKey = 64
	mostShardsBy = 500
)

var shardKey = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:@-]{0,63}$`)

// ErrNoShards is returned by a run of a shard, and by one of a period that was fanned out, in a process whose job has none:
// another version of the job has fanned the period out. It costs them a run; a replica that has shards, or a person, ends the
// period.
var ErrNoShards = errors.New("jobs: a period in shards of a job that has no shards here")

// Shard is a part of a period that has a lock, a token, a checkpoint and retries of its own.
type Shard struct {
	Key   string // "0" to Shards-1, or as Job.ShardKeys has said; empty: the run isn't a shard's
	Index int    // from 0
	Count int    // of the period, as it was fanned out, whatever the job says by now
}

// ShardKeys lists the shards of a period. It is asked once for each revision, in a run under the job's own lock.
type ShardKeys func(ctx context.Context, run *Run) (keys []string, err error)

// Reduce writes what completes a period whose shards are all complete. It commits with the completion, guarded by the token of
// the job's own lock.
type Reduce func(ctx context.Context, run *Run, tx pgx.Tx) error

func (j Job) sharded() bool { return j.Shards > 0 || j.ShardKeys != nil }

func (j Job) checkShards() error {
	bad := func(field string, value any, fix string) error { return &ConfigError{j.Name, field, value, fix} }
	switch {
	case j.Shards < 0 || j.Shards > mostShards:
		return bad("Shards", j.Shards, "use 1 to 10000, or 0 for none")
	case j.Shards > 0 && j.ShardKeys != nil:
		return bad("Shards", j.Shards, "leave it out, or ShardKeys: the function says how many there are")
	case j.sharded() && j.outbox:
		return bad("Shards", j.Shards, "leave it out: an outbox sends one message at a time")
	case j.ShardsBy != "" && j.ShardKeys == nil, storable(j.ShardsBy) != j.ShardsBy, len(j.ShardsBy) > mostShardsBy:
		return bad("ShardsBy", j.ShardsBy, "say how ShardKeys lists them, in at most 500 bytes of UTF-8 without NUL")
	case j.Reduce != nil && !j.sharded():
		return bad("Reduce", "a function", "set Shards or ShardKeys, or use Run.Complete in Func")
	case j.sharded() && j.longestLock()+1+mostShardKey > 255:
		return bad("Lock", j.Lock, "use at most 190 bytes, 159 with Overlap allow: the shard's key is added")
	}
	return nil
}

func (j Job) longestLock() int {
	if j.Overlap == OverlapAllow {
		return len(j.Lock) + mostKey
	}
	return len(j.Lock)
}

// shardKeys are the keys for one period.
func (r *Run) shardKeys(ctx context.Context) ([]string, error) {
	if r.job.ShardKeys == nil {
		keys := make([]string, r.job.Shards)
		for i := range keys {
			keys[i] = strconv.Itoa(i)
		}
		return keys, nil
	}
	keys, err := r.job.ShardKeys(ctx, r)
	if err != nil {
		return nil, err
	}
	if i, fix := BadShardKey(keys); i >= 0 {
		return nil, &ConfigError{r.Job, "ShardKeys", keys[i], fix}
	}
	return keys, nil
}

// BadShardKey returns the place of the first key that can't be there and what to do about it; -1 if all can. A shard's key is a
// letter or digit, then up to 63 of letters, digits and ._:@-; a period has each once, and at most 10000.
func BadShardKey(keys []string) (at int, fix string) {
	seen := map[string]bool{}
	for i, k := range keys {
		switch {
		case i >= mostShards:
			return i, "list at most 10000"
		case !shardKey.MatchString(k):
			return i, "use a letter or digit, then up to 63 of letters, digits and ._:@-"
		case seen[k]:
			return i, "list it once"
		}
		seen[k] = true
	}
	return -1, ""
}

// rowKey is the key of the run's row: a shard's is its period's, # and its own.
func (r *Run) rowKey() string {
	if r.Shard.Key == "" {
		return r.Period.Key
	}
	return r.Period.Key + "#" + r.Shard.Key
}

// cutKey parts the key of a row. No other key has a #.
func cutKey(row string) (period, shard string) {
	period, shard, _ = strings.Cut(row, "#")
	return period, shard
}

// place is the run's period, and its shard as far as the row's key tells.
func place(x runRow, offset int) (schedule.Period, Shard) {
	key, shard := cutKey(x.key)
	return schedule.Period{Key: key, Start: x.start.UTC(), End: x.end.UTC(), Offset: offset}, Shard{Key: shard}
}

const (
	shardSQL = `
select s.shard_no, coalesce(p.shards, 0) from pawl.periods s left join pawl.periods p on p.job = s.job and p.key = s.parent and p.revision = s.revision
 where s.job = $1 and s.key = $2 and s.revision = $3`

	fannedSQL = `
select p.shards is not null, array(select s.shard from pawl.periods s where s.job = p.job and s.parent = p.key and s.revision = p.revision order by s.shard_no),
       (select count(*) from pawl.periods s where s.job = p.job and s.parent = p.key and s.revision = p.revision and s.state not in ('complete', 'skipped'))
  from pawl.runs r join pawl.periods p on p.job = r.job and p.key = r.key and p.revision = r.revision where r.id = $1::text::uuid`
)

// work is the run's function: the job's own, unless the run is there to fan its period out, or to reduce what the shards have
// done.
func (r *Run) work(ctx context.Context) error {
	switch {
	case !r.job.sharded() && (r.Shard.Key != "" || r.reduces): // the whole function would do again what shards have done
		return fmt.Errorf("%w: %s %s: give the job its shards back, or cancel the period", ErrNoShards, r.Job, r.rowKey())
	case r.Shard.Key != "":
		if err := r.loadShard(ctx); err != nil {
			return err
		}
		return r.permitted(ctx)
	case !r.job.sharded():
		return r.permitted(ctx)
	}
	fanned, keys, left, err := r.fanned(ctx)
	if err != nil {
		return err
	}
	if !fanned {
		if keys, err = r.shardKeys(ctx); err != nil {
			return err
		}
		left = len(keys)
		if r.Attempt == 1 && r.Revision == 1 {
			r.runner.metrics.Lateness.WithLabelValues(r.Job).Observe(r.lease.AcquiredAt.Sub(r.ScheduledAt).Seconds())
		}
	}
	if left > 0 {
		return r.fanOut(ctx, keys)
	}
	return r.Complete(ctx, func(tx pgx.Tx) error {
		if r.job.Reduce == nil {
			return nil
		}
		return r.job.Reduce(ctx, r, tx)
	})
}

func (r *Run) loadShard(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := r.runner.pool.QueryRow(ctx, shardSQL, r.Job, r.rowKey(), r.Revision).Scan(&r.Shard.Index, &r.Shard.Count)
	if err != nil {
		return fmt.Errorf("jobs: shard of %s %s: %w", r.Job, r.rowKey(), err)
	}
	return nil
}

// fanned answers whether the run's period was fanned out before, into which shards, and how many of them have work left. They
// can't change while the run lives.
func (r *Run) fanned(ctx context.Context) (fanned bool, keys []string, left int, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err = r.runner.pool.QueryRow(ctx, fannedSQL, r.ID.String()).Scan(&fanned, &keys, &left)
	if err != nil {
		err = fmt.Errorf("jobs: shards of %s %s: %w", r.Job, r.Period.Key, err)
	}
	return fanned, keys, left, err
}
