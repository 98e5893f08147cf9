package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"pawl/fence"
)

const (
	// The period's row, so that its name stays while the effect is written. By the run: the job may have another name by now.
	// A shard's effects are its period's: a rerun may be cut in another way.
	effectPeriodSQL = `
select p.job, coalesce(p.sends_as, p.job), coalesce(p.parent, p.key), p.key_revision, clock_timestamp() from pawl.runs r join pawl.periods p on p.job = r.job and p.key = r.key and p.revision = r.revision
 where r.id = $1::text::uuid for key share of p`

	lastEffectSQL = `
select id, try, idempotency_key, state, request, coalesce(response, ''), coalesce(reason, error, ''), operation::text, sends, at, valid_until
  from pawl.effects where job = $1 and key = $2 and revision = $3 and effect = $4 order by try desc limit 1 for no key update`

	intendSQL = `
insert into pawl.effects (job, key, revision, effect, try, idempotency_key, request, run, token, operation, valid_until)
values ($1, $2, $3, $4, $5, $6, $7, $8::text::uuid, $9, $10::text::uuid, $11) returning id, at`

	againSQL = `
update pawl.effects set state = 'intended', sends = sends + 1, run = $2::text::uuid, token = $3, operation = $4::text::uuid where id = $1`

	// Nothing has been sent under its key yet: it begins anew, with the request as it is now.
	anewSQL = `
update pawl.effects set state = 'intended', sends = 1, request = $5, error = null, at = clock_timestamp(), run = $2::text::uuid, token = $3, operation = $4::text::uuid
 where id = $1 returning at`

	unsentSQL = `
update pawl.effects set sends = sends - 1, error = $2 where id = $1 and state = 'intended' and operation = $3::text::uuid`

	doubtSQL = `
update pawl.effects set state = 'uncertain', error = coalesce(error, $2), run = $3::text::uuid, token = $4 where id = $1 and state in ('intended', 'uncertain')`

	// Somebody may have decided meanwhile. Whose lease is over the guard has refused; tokens of shards don't compare.
	outcomeSQL = `
update pawl.effects set state = $2, response = nullif($3, ''), error = nullif($4, ''), run = $5::text::uuid, token = $6,
       ended_at = case when $2 in ('done', 'failed') then clock_timestamp() end
 where id = $1 and state in ('intended', 'uncertain')`

	outcomeTimeout = 5 * time.Second
	tooLateToSend  = "it may have been sent, and may not be sent again"
)

// intend decides what is to be done and commits the intent of it. With it come the entry as it stands, and for how long it may be
// sent.
func (r *Run) intend(ctx context.Context, c EffectConfig, request string) (e entry, do step, left time.Duration, err error) {
	operation := uuid.NewString()
	for try := 1; ; try++ {
		err = r.Tx(ctx, func(tx pgx.Tx) error {
			e, do, left, err = r.intent(ctx, tx, c, request, operation)
			return err
		})
		if try == 2 || !errors.Is(err, fence.ErrUnknown) { // if it has committed, its operation says that it wasn't sent
			return e, do, left, err
		}
	}
}

func (r *Run) intent(ctx context.Context, tx pgx.Tx, c EffectConfig, request, operation string) (e entry, do step, left time.Duration, err error) {
	var now time.Time
	var sender string
	if err := tx.QueryRow(ctx, effectPeriodSQL, r.ID.String()).Scan(&e.job, &sender, &e.period, &e.revision, &now); err != nil {
		return e, 0, 0, err
	}
	err = tx.QueryRow(ctx, lastEffectSQL, e.job, e.period, e.revision, c.Key).Scan(&e.id, &e.try, &e.key, &e.state, &e.request,
		&e.response, &e.reason, &e.operation, &e.sends, &e.at, &e.validUntil)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return e, 0, 0, err
	}
	do, err = c.next(e, request, operation, now), nil
	switch do {
	case stepFresh:
		e.try++
		e.state, e.request, e.key = EffectIntended, request, c.keyOf(sender, r.Shard.Key, e)
		if e.validUntil == nil {
			e.validUntil = c.until(now)
		}
		err = tx.QueryRow(ctx, intendSQL, e.job, e.period, e.revision, c.Key, e.try, e.key, request, r.ID.String(), r.token.Seq, operation, e.validUntil).Scan(&e.id, &e.at)
		now, e.operation = e.at, operation
	case stepUnsent:
		e.request, e.operation = request, operation
		err = tx.QueryRow(ctx, anewSQL, e.id, r.ID.String(), r.token.Seq, operation, request).Scan(&e.at)
		now = e.at
	case stepAgain, stepProbe:
		e.operation = operation
		e.state = EffectIntended
		_, err = tx.Exec(ctx, againSQL, e.id, r.ID.String(), r.token.Seq, operation)
	case stepPerson, stepInquire:
		_, err = tx.Exec(ctx, doubtSQL, e.id, tooLateToSend, r.ID.String(), r.token.Seq)
		e.state = EffectUncertain
	case stepAnswer, stepDropped, stepChanged, stepExpired:
	}
	return e, do, c.deadline(e).Sub(now), err
}

// unsent notes that a call that was meant has sent nothing. That it isn't noted costs caution: the call counts as sent.
func (r *Run) unsent(ctx context.Context, e *entry, cause error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), outcomeTimeout)
	defer cancel()
	err := r.Tx(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, unsentSQL, e.id, message(cause), e.operation)
		return err
	})
	if err != nil {
		r.Logger().WarnContext(ctx, "not noted that nothing was sent", "effect", e.id, "error", err)
	}
}

// outcome commits what has become of an effect, also when ctx has just ended, as long as the lease lives.
func (r *Run) outcome(ctx context.Context, e *entry, state string, response any, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), outcomeTimeout)
	defer cancel()
	said := message(cause)
	if state == EffectDone {
		text, err := json.Marshal(response)
		if err != nil || len(text) > mostRequest { // it has happened all the same
			said, text = fmt.Sprintf("the response is not kept: %d bytes, %s", len(text), message(err)), []byte("null")
		}
		e.response = storable(string(text))
	}
	var changed int64
	write := func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, outcomeSQL, e.id, state, e.response, said, r.ID.String(), r.token.Seq)
		changed = tag.RowsAffected()
		return err
	}
	err := r.Tx(ctx, write)
	if errors.Is(err, fence.ErrUnknown) {
		if err = r.Tx(ctx, write); err == nil {
			changed = 1
		}
	}
	if err == nil && changed != 1 {
		err = errors.New("it has been decided meanwhile")
	}
	if err != nil {
		return fmt.Errorf("jobs: outcome %s of effect %d is not recorded: %w", state, e.id, err)
	}
	e.state = state
	return nil
}
