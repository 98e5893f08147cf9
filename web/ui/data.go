package ui

import (
	"context"
	"time"

	"pawl/jobs"
	"pawl/lockrepo"
	"pawl/lockrepo/approvals"
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
}

// Jobs is what the pages ask of [*jobs.History].
type Jobs interface {
	Counts(ctx context.Context) (jobs.Counts, error)
	Periods(ctx context.Context, f jobs.PeriodFilter) ([]jobs.PeriodRecord, error)
	JobPage(ctx context.Context, f jobs.JobFilter) ([]jobs.JobSummary, error)
	Job(ctx context.Context, name string) (jobs.JobSummary, error)
	Runs(ctx context.Context, f jobs.RunFilter) ([]jobs.RunRecord, error)
}

// Approvals is what the pages ask of [*approvals.Store].
type Approvals interface {
	List(ctx context.Context, f approvals.Filter) ([]approvals.Request, error)
}
