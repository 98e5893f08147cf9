package jobs

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Receipt is what the other side says it has got.
type Receipt struct {
	IdempotencyKey string
	Detail         string // for people, such as amount and account
	Body           any    // for Reconciliation.Differs
}

// Reconciliation compares the effects of a job with what the other side says it has got. Of and List are required.
type Reconciliation struct {
	Of     string        // the job whose effects are compared
	Since  time.Duration // how far it looks back, or farther, to where the last one that was complete has ended; default 48h
	Settle time.Duration // effects younger than it are left for the next time; default 15m
	// List gives all that the other side has got between two times, by its own clock or more than that, to each. Its error, and that
	// of each, is returned.
	List func(ctx context.Context, from, to time.Time, each func(Receipt) error) error
	// Differs says in words how the two differ, or "" if they don't. Nil: the key is enough.
	Differs func(ours EffectInfo, theirs Receipt) string
}

const (
	reconcileSince  = 48 * time.Hour
	reconcileSettle = 15 * time.Minute
	receiptBatch    = 500

	receiptsSQL = `
select id, job, key, revision, effect, try, idempotency_key, state, request::json, coalesce(response, 'null')::json, sends, token, at
  from pawl.effects where job = $1 and idempotency_key = any ($2::text[])`

	matchSQL = `
with same as (
  update pawl.effects set matched_at = clock_timestamp() where id = any ($2::bigint[])
)
delete from pawl.effect_differences where job = $1 and idempotency_key = any ($3::text[])`

	differSQL = `
insert into pawl.effect_differences as d (job, idempotency_key, kind, effect, detail)
select $1, q.key, q.kind, nullif(q.effect, 0), nullif(q.detail, '') from unnest($2::text[], $3::text[], $4::bigint[], $5::text[]) q (key, kind, effect, detail)
 order by q.key
on conflict (job, idempotency_key) do update set kind = excluded.kind, effect = excluded.effect, detail = excluded.detail, last_at = clock_timestamp()`

	absentSQL = `
insert into pawl.effect_differences as d (job, idempotency_key, kind, effect, detail)
select e.job, e.idempotency_key, 'absent', e.id, left(e.request, 500) from pawl.effects e
 where e.job = $1 and e.at >= $2 and e.at < $3 and e.state = 'done' and (e.matched_at is null or e.matched_at < $4)
   and not exists (select from pawl.effect_differences x where x.job = e.job and x.idempotency_key = e.idempotency_key and x.last_at >= $4)
 order by e.idempotency_key
on conflict (job, idempotency_key) do update set kind = 'absent', effect = excluded.effect, detail = excluded.detail, last_at = clock_timestamp()`

	// Of what no event has told yet, also by a run that has died over it. One event for all of them.
	unmatchedEventSQL = `
with fresh as (
  update pawl.effect_differences set noted_at = clock_timestamp() where job = $1 and noted_at is null returning idempotency_key, kind
), many as (
  select count(*) as n, count(*) filter (where kind = 'absent') as absent, count(*) filter (where kind = 'stray') as stray,
         count(*) filter (where kind = 'differs') as differs, min(idempotency_key) as first from fresh
)
insert into pawl.events (kind, subject, app, job, period, revision, run, lock, token, detail)
select 'unmatched', concat_ws('/', $2::text, $3::text, $4::int), (select s.app from pawl.schedules s where s.job = $2), $2, $3, $4, $5::text::uuid, $6, $7::bigint,
       jsonb_build_object('of', $1, 'new', n, 'all', (select count(*) from pawl.effect_differences where job = $1),
         'absent', absent, 'stray', stray, 'differs', differs, 'first', first)
  from many where n > 0
on conflict (subject, kind) do nothing`

	// What the last complete one has left was younger than Settle when it began.
	spanSQL = `
select clock_timestamp(), (select max(r.started_at) from pawl.runs r where r.job = $1 and r.state = 'complete')`
)

// Reconcile makes a job of j that compares at each of its periods. What it finds is in [History.Unmatched] until it is found in
// order, and counted in the run's output; what it hadn't found before is an event, [alert.Unmatched]. A difference is no failure of
// the run.
func Reconcile(j Job, c Reconciliation) (Job, error) {
	c.Since, c.Settle = cmp.Or(c.Since, reconcileSince), cmp.Or(c.Settle, reconcileSettle)
	switch {
	case !jobName.MatchString(c.Of):
		return j, &ConfigError{j.Name, "Reconciliation.Of", c.Of, "give the name of the job whose effects are compared"}
	case c.List == nil:
		return j, &ConfigError{j.Name, "Reconciliation.List", nil, "set the function that lists what the other side has got"}
	case c.Settle < 0 || c.Since <= c.Settle:
		return j, &ConfigError{j.Name, "Reconciliation.Since", c.Since, "use more than Settle, which is positive"}
	}
	j.Func = c.compare
	return j, nil
}

func (c Reconciliation) compare(ctx context.Context, run *Run) error {
	var now time.Time
	var last *time.Time
	if err := run.runner.pool.QueryRow(ctx, spanSQL, run.Job).Scan(&now, &last); err != nil {
		return err
	}
	from, to := now.Add(-c.Since), now.Add(-c.Settle)
	if last != nil && last.Add(-c.Settle).Before(from) { // it didn't run for longer than it looks back
		from = last.Add(-c.Settle)
	}
	var batch []Receipt
	var seen, differ int64
	flush := func() error {
		n, err := c.match(ctx, run, to, batch)
		seen, differ, batch = seen+int64(len(batch)), differ+n, batch[:0]
		run.Progress(seen, 0)
		return err
	}
	err := c.List(ctx, from, now, func(x Receipt) error {
		if batch = append(batch, x); len(batch) < receiptBatch {
			return nil
		}
		return flush()
	})
	if err == nil {
		err = flush()
	}
	if err != nil {
		return fmt.Errorf("jobs: reconcile %s: %w", c.Of, err)
	}
	var absent int64
	err = run.Complete(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, absentSQL, c.Of, from, to, now)
		if err != nil {
			return err
		}
		absent = tag.RowsAffected()
		if _, err := tx.Exec(ctx, unmatchedEventSQL, c.Of, run.Job, run.rowKey(), run.Revision, run.ID.String(), run.token.Lock, run.token.Seq); err != nil {
			return err
		}
		said := fmt.Sprintf("effects of %s since %s: %d receipts, of which %d say otherwise; %d effects are absent there\n", c.Of, from.UTC().Format(time.RFC3339), seen, differ, absent)
		return run.KeepTx(ctx, tx, Output{Head: []byte(said), Bytes: int64(len(said))})
	})
	if err == nil {
		run.Logger().InfoContext(ctx, "reconciled", "of", c.Of, "receipts", seen, "differ", differ, "absent", absent)
	}
	return err
}

// match compares some receipts with the journal and returns how many differ. Effects that are younger than to are left alone.
func (c Reconciliation) match(ctx context.Context, run *Run, to time.Time, theirs []Receipt) (int64, error) {
	if len(theirs) == 0 {
		return 0, nil
	}
	var f findings
	err := run.Tx(ctx, func(tx pgx.Tx) error {
		ours, err := c.ours(ctx, tx, theirs)
		if err != nil {
			return err
		}
		f = c.judge(to, ours, theirs)
		if _, err := tx.Exec(ctx, matchSQL, c.Of, f.same, f.sameKeys); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, differSQL, c.Of, f.keys, f.kinds, f.effects, f.details)
		return err
	})
	return int64(len(f.keys)), err
}

func (c Reconciliation) ours(ctx context.Context, tx pgx.Tx, theirs []Receipt) (map[string]EffectInfo, error) {
	keys := make([]string, 0, len(theirs))
	for _, t := range theirs {
		keys = append(keys, t.IdempotencyKey)
	}
	rows, err := tx.Query(ctx, receiptsSQL, c.Of, keys)
	if err != nil {
		return nil, err
	}
	ours := map[string]EffectInfo{}
	var e EffectInfo
	_, err = pgx.ForEachRow(rows, []any{&e.ID, &e.Job, &e.Key, &e.Revision, &e.Effect, &e.Try, &e.IdempotencyKey, &e.State, &e.Request, &e.Response, &e.Sends, &e.Token, &e.At},
		func() error { ours[e.IdempotencyKey] = e; return nil })
	return ours, err
}

// findings are those of one batch.
type findings struct {
	same                           []int64
	sameKeys, keys, kinds, details []string
	effects                        []int64
}

func (c Reconciliation) judge(to time.Time, ours map[string]EffectInfo, theirs []Receipt) (f findings) {
	told := map[string]bool{}
	for _, t := range theirs {
		if told[t.IdempotencyKey] { // pages of a list overlap
			continue
		}
		told[t.IdempotencyKey] = true
		e, there := ours[t.IdempotencyKey]
		if there && e.State != EffectDone && !e.At.Before(to) { // its call is under way
			continue
		}
		kind, detail := "", t.Detail
		switch {
		case !there:
			kind = "stray"
		case e.State != EffectDone:
			kind, detail = "stray", "for us it is "+e.State+": "+t.Detail
		case c.Differs != nil:
			if d := c.Differs(e, t); d != "" {
				kind, detail = "differs", d
			}
		}
		if kind == "" {
			f.same, f.sameKeys = append(f.same, e.ID), append(f.sameKeys, t.IdempotencyKey)
		} else {
			f.keys, f.kinds, f.details = append(f.keys, t.IdempotencyKey), append(f.kinds, kind), append(f.details, storable(detail))
			f.effects = append(f.effects, e.ID)
		}
	}
	return f
}
