package ui

import (
	"context"
	"time"

	"github.com/google/uuid"

	"pawl/jobs"
	"pawl/lockrepo"
)

// Locks is what the pages ask of [*lockrepo.Repo].
type Locks interface {
	List(ctx context.Context, f lockrepo.Filter) ([]lockrepo.Info, error)
	Show(ctx context.Context, lock string) (lockrepo.Info, error)
	History(ctx context.Context, lock string, limit int, before int64) ([]lockrepo.Tenure, error)
	Spans(ctx context.Context, f lockrepo.SpanFilter) ([]lockrepo.Span, error)
	Refusals(ctx context.Context, f lockrepo.RefusalFilter) ([]lockrepo.Refusal, error)
	RefusalGroups(ctx context.Context, since time.Time, limit int) ([]lockrepo.RefusalGroup, error)
	StaleClaims(ctx context.Context, f lockrepo.StaleFilter) ([]lockrepo.Tenure, error)
	TenureCounts(ctx context.Context, lock string) (ended, live int, err error)
	Waiters(ctx context.Context, lock string, limit int) ([]lockrepo.Waiter, error)
	Audit(ctx context.Context, f lockrepo.AuditFilter) ([]lockrepo.AuditEntry, error)
	AuditActions(ctx context.Context) ([]string, error)
}

// Jobs is what the pages ask of [*jobs.History].
type Jobs interface {
	Counts(ctx context.Context) (jobs.Counts, error)
	Periods(ctx context.Context, f jobs.PeriodFilter) ([]jobs.PeriodRecord, error)
	JobPage(ctx context.Context, f jobs.JobFilter) ([]jobs.JobSummary, error)
	Job(ctx context.Context, name string) (jobs.JobSummary, error)
	Runs(ctx context.Context, f jobs.RunFilter) ([]jobs.RunRecord, error)
	Run(ctx context.Context, id uuid.UUID) (jobs.RunDetail, error)
	Why(ctx context.Context, job, key string) (jobs.Why, error)
	Queue(ctx context.Context) (jobs.QueueState, error)
	Calendar(ctx context.Context, job string, from, to time.Time) ([]jobs.PeriodDay, error)
	Latest(ctx context.Context, job, key string) (jobs.PeriodRecord, error)
	Current(ctx context.Context, job string) (key string, err error)
	Effects(ctx context.Context, f jobs.EffectFilter) ([]jobs.EffectInfo, error)
	Artifacts(ctx context.Context, f jobs.ArtifactFilter) ([]jobs.Artifact, error)
	ArtifactVersions(ctx context.Context, name string, before int64, limit int) ([]jobs.Artifact, error)
	Differences(ctx context.Context, f jobs.DifferenceFilter) ([]jobs.EffectDifference, error)
	Messages(ctx context.Context, f jobs.MessageFilter) ([]jobs.MessageInfo, error)
	Dead(ctx context.Context, job string, limit int) ([]jobs.PeriodRecord, error)
	ShardPage(ctx context.Context, job, key string, f jobs.ShardFilter) (jobs.ShardPage, error)
}
