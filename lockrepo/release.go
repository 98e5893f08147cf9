package lockrepo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// $1 name, $2 token (null: whichever this grant has), $3 grant id. An empty how: not held.
const releaseSQL = `select 1, coalesce(how, ''), coalesce(held, 0) from pawl.release($1::text, $2::bigint, $3::text::uuid)`

// releaseManySQL gives many back, in the order of their names. Somebody who keeps a lock's row may hold up its own release
// alone: together they wait only so long, then each by itself.
const releaseManySQL = `
select q.nth, coalesce(r.how, ''), coalesce(r.held, 0)
  from (select set_config('lock_timeout', '250ms', true) as wait offset 0) s
 cross join unnest($1::text[], $2::bigint[], $3::text[]::uuid[]) with ordinality q (name, token, grant_id, nth)
 cross join lateral pawl.release(q.name, q.token, case when s.wait is not null then q.grant_id end) r`

type releaseRequest struct {
	lock  string
	token *int64
	grant string
}

type releaseAnswer struct {
	how     string
	seconds float64
}

func (r *Repo) releaseMany(ctx context.Context, qs []releaseRequest) ([]releaseAnswer, error) {
	if q := qs[0]; len(qs) == 1 {
		return r.releaseAll(ctx, []int{0}, releaseSQL, q.lock, q.token, q.grant)
	}
	n, order := len(qs), make([]int, len(qs))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(qs[a].lock, qs[b].lock) })
	names, tokens, grants := make([]string, n), make([]*int64, n), make([]string, n)
	for i, o := range order {
		names[i], tokens[i], grants[i] = qs[o].lock, qs[o].token, qs[o].grant
	}
	return r.releaseAll(ctx, order, releaseManySQL, names, tokens, grants)
}

// releaseAll answers in the order of the requests.
func (r *Repo) releaseAll(ctx context.Context, order []int, sql string, args ...any) ([]releaseAnswer, error) {
	out, outcome := make([]releaseAnswer, len(order)), ""
	err := r.alone(ctx, query{sql, args, func(rows pgx.Rows) error {
		var nth int
		var a releaseAnswer
		_, err := pgx.ForEachRow(rows, []any{&nth, &a.how, &a.seconds}, func() error {
			outcome = a.how
			out[order[nth-1]] = a
			return nil
		})
		return err
	}}, &outcome)
	return out, err
}

// Release ends l now and wakes the runner whose lane waits for the lock. It answers a
// [*LostError], which is [ErrNotHeld], if the lease had ended already.
func (r *Repo) Release(ctx context.Context, l Lease) error {
	how, held, err := r.release(ctx, l.Token.Lock, &l.Token.Seq, l.Grant.String())
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return r.whyLost(ctx, l)
	case err != nil:
		return fmt.Errorf("lockrepo: release %s: %w", l.Token, err)
	}
	r.m.ended(how, held)
	r.cfg.Logger.DebugContext(ctx, "lock released", "token", l.Token, "grant_id", l.Grant)
	if how != "released" {
		return &LostError{Token: l.Token, Cause: ErrExpired}
	}
	return nil
}

func (r *Repo) release(ctx context.Context, lock string, token *int64, grant string) (how string, held time.Duration, err error) {
	a, err := gathered(ctx, r.releases, r.releaseMany, releaseRequest{lock, token, grant})
	if err == nil && a.how == "" {
		err = pgx.ErrNoRows
	}
	return a.how, time.Duration(a.seconds * float64(time.Second)), err
}

// undo releases what an acquire without an answer may have been granted. The
// server may still be at it, so one answer of "not held" isn't the last word.
func (r *Repo) undo(ctx context.Context, q Request) {
	ctx, cancel := context.WithTimeout(ctx, q.TTL)
	defer cancel()
	tick := time.NewTicker(max(q.TTL/10, minTTL))
	defer tick.Stop()
	for range 3 {
		_, _, err := r.release(ctx, q.Lock, nil, q.Grant.String())
		if err == nil {
			r.cfg.Logger.InfoContext(ctx, "unanswered grant released", "lock", q.Lock, "grant_id", q.Grant)
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
