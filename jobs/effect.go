package jobs

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Effect is something that a run sends to others, with the key by which a receiver tells repetitions.
type Effect struct {
	Request string `json:"request"` // as the job's definition says it, templates and names of secrets as written
	Key     string `json:"key"`
}

// effectKey is the key of what is sent for a period; job is its name when the period was first owed. It is the same for all
// runs and reruns, but for a rerun that repeats its effects, which is revision then, and after so many times that the receiver
// has definitely refused.
//
// A shard's has # and the shard's key at its end: no period's key has a #, so no two are alike.
func effectKey(job, row string, revision, refused int) string {
	period, shard := cutKey(row)
	k := job + ":" + period
	if revision > 1 {
		k += ":rev-" + strconv.Itoa(revision)
	}
	if refused > 0 {
		k += ":try-" + strconv.Itoa(refused+1)
	}
	if shard != "" {
		k += "#" + shard
	}
	return k
}

const (
	effectSQL = `
select coalesce(sends_as, job), key_revision, refused from pawl.periods where job = $1 and key = $2 and revision = $3`

	refusedSQL = `
update pawl.periods set refused = $4 where job = $1 and key = $2 and revision = $3 and refused < $4`

	spendTimeout = 5 * time.Second
)

// EffectKey is the idempotency key for what this run sends to others: the job and the period's key, in a shard with # and the
// shard's key. A retry and a rerun that is cut in the same way have the same one, so that a receiver that keeps keys does nothing
// twice. It is another one in a rerun that repeats the effects ([RerunConfig]), and after [Run.SpendKey].
func (r *Run) EffectKey(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	sender, revision, refused, err := r.effect(ctx)
	return effectKey(sender, r.rowKey(), revision, refused), err
}

// SpendKey is for a receiver that has definitely refused, and would answer the same to the same key again: from the commit
// on, which is guarded, retries and reruns of the period, or of the shard, have a key with the number of the try. It works
// also when ctx has just ended, as long as the lease lives. A crash before it costs nothing but one more refusal.
func (r *Run) SpendKey(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), spendTimeout)
	defer cancel()
	_, _, refused, err := r.effect(ctx)
	if err != nil {
		return err
	}
	return r.Tx(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, refusedSQL, r.Job, r.rowKey(), r.Revision, refused+1)
		return err
	})
}

func (r *Run) effect(ctx context.Context) (sender string, revision, refused int, err error) {
	if err := r.runner.pool.QueryRow(ctx, effectSQL, r.Job, r.rowKey(), r.Revision).Scan(&sender, &revision, &refused); err != nil {
		return "", 0, 0, fmt.Errorf("jobs: effects of %s %s: %w", r.Job, r.rowKey(), err)
	}
	return sender, revision, refused, nil
}

const sentEffectsSQL = `
select request, effect, idempotency_key, try from pawl.effects where job = $1 and key = $2 and revision = $3 and state = 'done' order by id`

// RerunEffects lists what a [Rerun] of the period with RepeatEffects would send again, as far as the job's definition
// says it, and what [Run.Effect] has on record as done. It changes nothing, and returns the errors of Rerun.
func RerunEffects(ctx context.Context, pool *pgxpool.Pool, job, key string) (effects []Effect, err error) {
	err = operate(ctx, pool, job, func(ctx context.Context, tx pgx.Tx, p *planned) error {
		last, err := complete(ctx, tx, job, key)
		if err != nil {
			return err
		}
		row := key
		if last.fanned {
			row += "#*" // one for each shard
		}
		for _, request := range p.Sends {
			effects = append(effects, Effect{request, effectKey(last.sendsAs, row, last.revision+1, 0)})
		}
		rows, err := tx.Query(ctx, sentEffectsSQL, job, key, last.keyRev)
		if err != nil {
			return err
		}
		var request, name, sent string
		var try int
		_, err = pgx.ForEachRow(rows, []any{&request, &name, &sent, &try}, func() error {
			again := effectKey(last.sendsAs, key, last.revision+1, 0) + "/" + name
			for _, own := range []string{key, key + "#" + name} { // it is the only one of the period, or of a shard
				if sent != effectKey(last.sendsAs, own, last.keyRev, try-1) {
					continue
				}
				if len(p.Sends) > 0 { // listed as it is now
					return nil
				}
				again = effectKey(last.sendsAs, own, last.revision+1, 0)
			}
			effects = append(effects, Effect{shortened(request), again})
			return nil
		})
		return err
	})
	return effects, err
}
