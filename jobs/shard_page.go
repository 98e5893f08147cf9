package jobs

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// ShardFilter chooses shards of one period. The zero value means all of its latest revision.
type ShardFilter struct {
	Revision int    // 0: the latest
	State    string // open, running, complete, dead, skipped or cancelled
	After    int64  // [ShardRecord.Place] of the last one of the page before; 0: from the beginning
	Limit    int    // default 100, at most 1000
}

// ShardPage is a part of a period's shards, those that aren't done first, and what all of them add up to.
type ShardPage struct {
	Revision int
	Counts   map[string]int // of all shards, by state
	All      int            // how many there are
	Complete int            // complete or skipped
	Done     int64          // of all
	Total    int64          // 0: not each of them has said
	Rows     []ShardRecord
}

const (
	shardSumsSQL = `
select s.state, count(*), coalesce(sum(r.done), 0)::bigint, coalesce(sum(r.total), 0)::bigint, count(*) filter (where r.total is null)
  from pawl.periods s left join lateral (select done, total from pawl.runs x where x.id = s.run limit 1) r on true
 where s.job = @job and s.parent = @key and s.revision = @revision::int group by s.state`

	shardPageSQL = `
select s.shard, s.shard_no as index, s.state, coalesce(s.reason, '') as reason, s.lock, s.attempts::int, s.not_before, coalesce(r.id::text, '') as run, r.token,
       coalesce(r.holder, '') as holder, r.started_at, r.ended_at, r.done, r.total, coalesce(r.error, '') as error
  from (select p.*, p.shard_no + 1 + case when p.state in ('complete', 'skipped') then @most::int else 0 end as place from pawl.periods p
         where p.job = @job and p.parent = @key and p.revision = @revision::int and (@state::text = '' or p.state = @state)) s
  left join lateral (select * from pawl.runs x where x.id = s.run limit 1) r on true
 where s.place > @after order by s.place limit @limit`
)

// Place is where the shard stands in the pages of its period: those that are complete or skipped come after the others.
func (s ShardRecord) Place() int64 {
	place := int64(s.Index) + 1
	if s.State == stateComplete || s.State == stateSkipped {
		place += mostShards
	}
	return place
}

// ShardPage returns some shards of a period. A period that wasn't fanned out has none.
func (h *History) ShardPage(ctx context.Context, job, key string, f ShardFilter) (ShardPage, error) {
	out := ShardPage{Revision: f.Revision, Counts: map[string]int{}}
	if err := oneOf("shard", f.State, stateOpen, stateRunning, stateComplete, stateDead, stateSkipped, stateCancelled); err != nil {
		return out, err
	}
	err := h.read(ctx, "shards", func(ctx context.Context, tx pgx.Tx) error {
		args := pgx.NamedArgs{"job": job, "key": key, "most": mostShards, "state": f.State, "after": f.After, "limit": limited(f.Limit)}
		if f.Revision == 0 {
			if err := tx.QueryRow(ctx, lastRevisionSQL, args).Scan(&out.Revision); err != nil {
				return err
			}
		}
		args["revision"] = out.Revision
		if err := out.sum(ctx, tx, args); err != nil || out.All == 0 {
			return err
		}
		rows, err := tx.Query(ctx, shardPageSQL, args)
		if err != nil {
			return err
		}
		out.Rows, err = pgx.CollectRows(rows, pgx.RowToStructByName[ShardRecord])
		return err
	})
	for i := range out.Rows {
		utc(out.Rows[i].NotBefore, out.Rows[i].StartedAt, out.Rows[i].EndedAt)
	}
	return out, err
}

// sum adds up all shards.
func (p *ShardPage) sum(ctx context.Context, tx pgx.Tx, args pgx.NamedArgs) error {
	rows, err := tx.Query(ctx, shardSumsSQL, args)
	if err != nil {
		return err
	}
	var state string
	var n, silent, unsaid int
	var done, total int64
	_, err = pgx.ForEachRow(rows, []any{&state, &n, &done, &total, &unsaid}, func() error {
		p.Counts[state] = n
		p.All += n
		if state == stateComplete || state == stateSkipped {
			p.Complete += n
		}
		p.Done, p.Total, silent = p.Done+done, p.Total+total, silent+unsaid
		return nil
	})
	if silent > 0 {
		p.Total = 0
	}
	return err
}
