package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

var (
	// ErrUnknownEffect is returned for the id of an effect that isn't there.
	ErrUnknownEffect = errors.New("jobs: unknown effect")
	// ErrEffectState is returned when an effect can't be decided as it stands.
	ErrEffectState = errors.New("jobs: effect can't be decided as it stands")
)

// EffectStateError is an [ErrEffectState] with what to do instead.
type EffectStateError struct {
	ID    int64
	State string
	Fix   string
}

// Error implements error.
func (e *EffectStateError) Error() string {
	return fmt.Sprintf("jobs: effect %d is %s: %s", e.ID, e.State, e.Fix)
}

// Is makes an EffectStateError an [ErrEffectState].
func (e *EffectStateError) Is(target error) bool { return target == ErrEffectState }

// EffectDecision is what a person has found out. With Seen it is for the effect as they saw it: it is refused if a run has been
// at it since.
type EffectDecision struct {
	State    string          // EffectDone, EffectFailed: it has not happened, and is sent with a new key; EffectDropped: it is given up
	Response json.RawMessage // of a done one: what Effect gives to the function; default null
	Seen     *EffectSeen     // nil: however it stands
}

// EffectSeen is how an effect stood when somebody looked: see [EffectInfo].
type EffectSeen struct {
	State string
	Sends int
}

const (
	// The period comes before its effects: a start waits, or has come before.
	decidingSQL = `
select p.state, e.state, e.job, e.key, e.sends from pawl.effects e
  join lateral (select x.state from pawl.periods x where x.job = e.job and x.key = e.key order by x.revision desc limit 1 for no key update) p on true
 where e.id = $1`
	decideSQL = `
update pawl.effects set state = $2, response = nullif($3, ''), decided_by = $4, reason = $5, ended_at = clock_timestamp()
 where id = $1 and state in ('intended', 'uncertain') returning state`
)

// DecideEffect records what a person says has become of an effect of which nobody knew. The next run of its period goes by it. It
// returns [ErrUnknownEffect], [ErrNoReason], or an [*EffectStateError] if the effect has an outcome already, or a run is at
// its period, which may be at the effect too, or it isn't as it was seen. The decision goes into the audit.
func DecideEffect(ctx context.Context, pool *pgxpool.Pool, id int64, d EffectDecision, actor, reason string) error {
	if reason = strings.TrimSpace(reason); reason == "" {
		return ErrNoReason
	}
	switch {
	case !slices.Contains([]string{EffectDone, EffectFailed, EffectDropped}, d.State):
		return &ConfigError{Field: "Decision", Value: d.State, Fix: "use done, failed or dropped"}
	case len(d.Response) > mostRequest:
		return &ConfigError{Field: "Response", Value: fmt.Sprint(len(d.Response), " bytes"), Fix: "keep it within 64 KiB"}
	case d.Response != nil && (d.State != EffectDone || !json.Valid(d.Response)):
		return &ConfigError{Field: "Response", Value: shortened(string(d.Response)), Fix: "give JSON, and only with done"}
	}
	opts := pgx.TxOptions{IsoLevel: pgx.ReadCommitted}
	return pgx.BeginTxFunc(ctx, pool, opts, func(tx pgx.Tx) error {
		var period, state, job, key string
		var sends int
		err := tx.QueryRow(ctx, decidingSQL, id).Scan(&period, &state, &job, &key, &sends)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return fmt.Errorf("%w %d: list them with: pawl effects ls", ErrUnknownEffect, id)
		case err != nil:
			return err
		case period == stateRunning:
			return &EffectStateError{id, state, "a run is at its period: wait for its end, or cancel it"}
		case d.Seen != nil && *d.Seen != EffectSeen{state, sends}:
			return &EffectStateError{id, state, "it was " + d.Seen.State + " when you looked, or has been sent again since: look anew"}
		}
		was := state
		err = tx.QueryRow(ctx, decideSQL, id, d.State, storable(string(d.Response)), actor, reason).Scan(&state)
		if errors.Is(err, pgx.ErrNoRows) {
			return &EffectStateError{id, was, "it has its outcome already"}
		}
		if err != nil {
			return err
		}
		var b batch
		// The response as text: not all JSON is jsonb.
		queueAudit(&b, actor, "effect_decide", job, key, "", reason, detail(map[string]any{"effect": id, "was": was, "is": d.State, "response": string(d.Response)}))
		return tx.SendBatch(ctx, &b).Close()
	})
}
