package jobs

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"pawl/fence"
)

// Taker is who was granted a token, and when (UTC).
type Taker struct {
	Lock       string    `json:"lock"`
	Token      int64     `json:"token"`
	Holder     string    `json:"holder"`
	AcquiredAt time.Time `json:"acquired_at"`
}

// Takers says who was granted each of the tokens, whether the lease lives or has ended. Tokens whose history is
// pruned are left out.
func (h *History) Takers(ctx context.Context, tokens []fence.Token) ([]Taker, error) {
	const sql = `
select g.lock, g.token, coalesce(g.holder, '') as holder, g.acquired_at
  from unnest(@locks::text[], @seqs::bigint[]) w (lock, seq)
  cross join lateral (
    select l.name as lock, l.token, l.holder, l.acquired_at from pawl.locks l
     where l.name = w.lock and l.token = w.seq and l.grant_id is not null
    union all
    select t.lock, t.token, t.holder, t.acquired_at from pawl.tenures t where t.lock = w.lock and t.token = w.seq
    limit 1) g
 where g.acquired_at is not null`
	locks, seqs := make([]string, len(tokens)), make([]int64, len(tokens))
	for i, t := range tokens {
		locks[i], seqs[i] = t.Lock, t.Seq
	}
	takers, err := collect[Taker](ctx, h, "takers", sql, pgx.NamedArgs{"locks": locks, "seqs": seqs})
	for i := range takers {
		utc(&takers[i].AcquiredAt)
	}
	return takers, err
}
