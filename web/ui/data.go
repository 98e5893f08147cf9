package ui

import (
	"context"

	"pawl/jobs"
	"pawl/lockrepo"
)

// Locks is what the pages ask of [*lockrepo.Repo].
type Locks interface {
	List(ctx context.Context, f lockrepo.Filter) ([]lockrepo.Info, error)
	Show(ctx context.Context, lock string) (lockrepo.Info, error)
	History(ctx context.Context, lock string, limit int, before int64) ([]lockrepo.Tenure, error)
	Refusals(ctx context.Context, f lockrepo.RefusalFilter) ([]lockrepo.Refusal, error)
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
	Latest(ctx context.Context, job, key string) (jobs.PeriodRecord, error)
	Current(ctx context.Context, job string) (key string, err error)
}
