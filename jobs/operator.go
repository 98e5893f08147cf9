package jobs

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/jobs/schedule"
)

// Operator is what people do to the jobs of one database, for callers that have no pool. It is safe for concurrent use.
type Operator struct{ pool *pgxpool.Pool }

// NewOperator returns what people do to the jobs in pool's database.
func NewOperator(pool *pgxpool.Pool) *Operator { return &Operator{pool} }

// Pause is [Pause].
func (o *Operator) Pause(ctx context.Context, job string, c PauseConfig) error {
	return Pause(ctx, o.pool, job, c)
}

// Resume is [ResumeAs].
func (o *Operator) Resume(ctx context.Context, job string, by By, owe schedule.CatchUp) (int, error) {
	return ResumeAs(ctx, o.pool, job, by, owe)
}

// Trigger is [Trigger].
func (o *Operator) Trigger(ctx context.Context, job string, c TriggerConfig) (key string, err error) {
	return Trigger(ctx, o.pool, job, c)
}

// Rerun is [Rerun].
func (o *Operator) Rerun(ctx context.Context, job, key string, c RerunConfig) (revision int, err error) {
	return Rerun(ctx, o.pool, job, key, c)
}

// Retry is [RetryAs].
func (o *Operator) Retry(ctx context.Context, job, key string, by By) error {
	return RetryAs(ctx, o.pool, job, key, by)
}

// Cancel is [CancelAs].
func (o *Operator) Cancel(ctx context.Context, job, key string, by By) error {
	return CancelAs(ctx, o.pool, job, key, by)
}

// BackfillList is [BackfillList].
func (o *Operator) BackfillList(ctx context.Context, job, from, to string, c BackfillConfig) ([]BackfillPeriod, error) {
	return BackfillList(ctx, o.pool, job, from, to, c)
}

// DecideEffect is [DecideEffect].
func (o *Operator) DecideEffect(ctx context.Context, id int64, d EffectDecision, actor, reason string) error {
	return DecideEffect(ctx, o.pool, id, d, actor, reason)
}

// Backfill is [Backfill].
func (o *Operator) Backfill(ctx context.Context, job, from, to string, c BackfillConfig) ([]BackfillPeriod, error) {
	return Backfill(ctx, o.pool, job, from, to, c)
}
