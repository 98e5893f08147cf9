package jobs

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// ShardRecord is one shard of a period as it stands. Times are UTC by the database's clock; what is not known is nil or empty.
type ShardRecord struct {
	Shard     string     `json:"shard"` // its key
	Index     int        `json:"index"` // from 0
	State     string     `json:"state"` // as of a period: open, running, complete, dead, skipped, cancelled
	Reason    string     `json:"reason"`
	Lock      string     `json:"lock"`
	Attempts  int        `json:"attempts"`
	NotBefore *time.Time `json:"not_before"` // when it is retried
	Run       string     `json:"run"`        // that has it or had it last
	Token     *int64     `json:"token"`      // of that run, as all below
	Holder    string     `json:"holder"`
	StartedAt *time.Time `json:"started_at"`
	EndedAt   *time.Time `json:"ended_at"`
	Done      *int64     `json:"done"`
	Total     *int64     `json:"total"`
	Error     string     `json:"error"`
}

// Shards are those of one revision of a period, and what they add up to.
type Shards struct {
	Revision int           `json:"revision"`
	Shards   []ShardRecord `json:"shards"`
	Complete int           `json:"complete"` // shards that are complete or skipped
	Done     int64         `json:"done"`     // of all
	Total    int64         `json:"total"`    // 0: not each of them has said
}

const shardsSQL = `
select s.shard, s.shard_no as index, s.state, coalesce(s.reason, '') as reason, s.lock, s.attempts::int, s.not_before, coalesce(r.id::text, '') as run, r.token,
       coalesce(r.holder, '') as holder, r.started_at, r.ended_at, r.done, r.total, coalesce(r.error, '') as error
  from pawl.periods s left join pawl.runs r on r.id = s.run
 where s.job = @job and s.parent = @key and s.revision = @revision::int
 order by s.shard_no limit @most`

const lastRevisionSQL = `select coalesce(max(revision), 1) from pawl.periods where job = @job and key = @key`

// Shards returns the shards of a period in their order, of the latest revision if revision is 0. A period that wasn't fanned
// out has none.
func (h *History) Shards(ctx context.Context, job, key string, revision int) (Shards, error) {
	out := Shards{Revision: revision, Shards: []ShardRecord{}}
	err := h.read(ctx, "shards", func(ctx context.Context, tx pgx.Tx) error {
		args := pgx.NamedArgs{"job": job, "key": key, "most": mostShards}
		if revision == 0 {
			if err := tx.QueryRow(ctx, lastRevisionSQL, args).Scan(&out.Revision); err != nil {
				return err
			}
		}
		args["revision"] = out.Revision
		rows, err := tx.Query(ctx, shardsSQL, args)
		if err != nil {
			return err
		}
		out.Shards, err = pgx.CollectRows(rows, pgx.RowToStructByName[ShardRecord])
		return err
	})
	if err == nil {
		out.add()
	}
	return out, err
}

// add adds up what the shards say.
func (s *Shards) add() {
	all := true
	for i := range s.Shards {
		x := &s.Shards[i]
		utc(x.NotBefore, x.StartedAt, x.EndedAt)
		if x.State == stateComplete || x.State == stateSkipped {
			s.Complete++
		}
		s.Done += deref(x.Done)
		s.Total += deref(x.Total)
		all = all && x.Total != nil
	}
	if !all {
		s.Total = 0
	}
}
