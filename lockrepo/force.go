package lockrepo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"pawl/fence"
)

// Force says who releases a lock by force, and why.
type Force struct {
	Actor  string // the person
	Reason string // at least 10 characters, for the audit log
	Kill   bool   // also terminate the holder's open guarded transactions
}

const minReason = 10

// $1 name, $2 token, $3 actor, $4 reason, $5 kill. Step one: it never waits for
// guarded transactions. From its commit no new guard and no renewal passes; the
// open ones drain, and the next acquire waits for them.
const forceSQL = `
with mine as materialized (
  select * from pawl.locks where name = $1 and token = $2 and grant_id is not null for no key update
), freed as (
  update pawl.locks l set grant_id = null, holder = null, key = null, request_id = null, expires_at = null, renewed_at = clock_timestamp()
    from mine m where l.name = m.name returning l.name
), ended as (
  insert into pawl.tenures (lock, token, grant_id, holder, key, request_id, acquired_at, expires_at, ended_at, how, beats, longest_gap)
  select name, token, grant_id, holder, key, request_id, acquired_at, expires_at, clock_timestamp(), 'forced', beats, longest_gap from mine
  returning *
), noted as (
  insert into pawl.audit (actor, action, lock, token, reason, detail)
  select $3, 'force_release', e.lock, e.token, $4, jsonb_build_object('holder', e.holder, 'kill', $5::bool) from ended e
), told as (
  select pg_notify('pawl_released', name) from freed
)
select e.lock, e.token, coalesce(e.holder, ''), e.acquired_at, e.ended_at, e.how, e.successor,
       (select count(*) from pawl.refusals f where f.lock = e.lock and f.token = e.token and not f.passed), e.beats, e.longest_gap,
       coalesce(e.key, ''), coalesce(k.name, e.key, ''), coalesce(e.request_id, ''), '', null::timestamptz
  from ended e cross join told left join pawl.keys k on k.id = e.key`

// $1 token. Step two: backends that still have a guarded transaction open under
// the token. Their guard has given them the name.
const killSQL = `
select count(*) from (
  select pg_terminate_backend(pid) as killed from pg_stat_activity
   where application_name = 'pawl ' || $1::bigint and pid <> pg_backend_pid()) k where killed`

// Force releases the lease with that token, whoever holds it, and writes the
// tenure and an audit row in the same transaction. It doesn't wait: the
// holder's open guarded transactions may still commit, and until they have
// ended nobody is granted the lock; Kill ends them now. It answers
// [ErrNotFound] if there is no such lock, and [ErrNotHeld] if that token has no
// lease any more: look again before you force.
func (r *Repo) Force(ctx context.Context, lock string, token int64, f Force) (Tenure, error) {
	if err := f.check(lock); err != nil {
		return Tenure{}, fmt.Errorf("lockrepo: force: %w", err)
	}
	var t Tenure
	err := r.ask(ctx, query{forceSQL, []any{lock, token, f.Actor, f.Reason, f.Kill}, single(t.dest()...)})
	if errors.Is(err, pgx.ErrNoRows) {
		i, err := r.Show(ctx, lock)
		if err == nil {
			err = fmt.Errorf("lockrepo: force %q: token %s has no lease, the lock is %s with token %s: %w",
				lock, fence.FormatSeq(token), i.State, fence.FormatSeq(i.Token), ErrNotHeld)
		}
		return Tenure{}, err
	}
	if err != nil {
		return Tenure{}, fmt.Errorf("lockrepo: force %q: %w", lock, err)
	}
	t.utc()
	r.cfg.Logger.WarnContext(ctx, "lock released by force", "lock", lock, "token", token, "holder", t.Holder, "actor", f.Actor, "reason", f.Reason)
	if !f.Kill {
		return t, nil
	}
	if err := r.ask(ctx, query{killSQL, []any{token}, single(&t.Killed)}); err != nil {
		return t, fmt.Errorf("lockrepo: force %q: released, but its transactions were not terminated: %w", lock, err)
	}
	return t, nil
}

func (f Force) check(lock string) error {
	if err := checkName(lock); err != nil {
		return err
	}
	if strings.TrimSpace(f.Actor) == "" {
		return badInput("actor is empty: say who releases the lock")
	}
	if n := utf8.RuneCountInString(strings.TrimSpace(f.Reason)); n < minReason {
		return badInput("reason has %d characters: give at least %d for the audit log", n, minReason)
	}
	return nil
}
