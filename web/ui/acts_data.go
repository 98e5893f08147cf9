package ui

import (
	"context"

	"pawl/jobs"
	"pawl/jobs/schedule"
	"pawl/lockrepo/approvals"
	"pawl/lockrepo/keys"
)

// Acts is what people may do: each is one transaction with its row of the audit.
type Acts interface {
	RequestRelease(ctx context.Context, r approvals.Release) (approvals.Request, error)
	Decide(ctx context.Context, id int64, by approvals.Person, approve bool, note string) (approvals.Request, error)
	Pause(ctx context.Context, job string, c jobs.PauseConfig) error
	Resume(ctx context.Context, job string, by jobs.By, owe schedule.CatchUp) (int, error)
	Trigger(ctx context.Context, job string, c jobs.TriggerConfig) (key string, err error)
	Rerun(ctx context.Context, job, key string, c jobs.RerunConfig) (revision int, err error)
	Retry(ctx context.Context, job, key string, by jobs.By) error
	Cancel(ctx context.Context, job, key string, by jobs.By) error
	// BackfillList changes nothing, but it is asked for here: it takes the schedule's row, which a read-only transaction can't.
	BackfillList(ctx context.Context, job, from, to string, c jobs.BackfillConfig) ([]jobs.BackfillPeriod, error)
	Backfill(ctx context.Context, job, from, to string, c jobs.BackfillConfig) ([]jobs.BackfillPeriod, error)
	DecideEffect(ctx context.Context, id int64, d jobs.EffectDecision, actor, reason string) error
	CreateKey(ctx context.Context, k keys.Key) (bearer string, made keys.Key, err error)
	RevokeKey(ctx context.Context, id, by string) (keys.Key, error)
}

// Approvals is what the pages ask of [*approvals.Store].
type Approvals interface {
	List(ctx context.Context, f approvals.Filter) ([]approvals.Request, error)
	Get(ctx context.Context, id int64) (approvals.Request, error)
	SingleOperator(ctx context.Context) (bool, error)
}

// Keys is what the pages ask of [*keys.Store].
type Keys interface {
	List(ctx context.Context) ([]keys.Key, error)
}
