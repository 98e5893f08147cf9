package ui_test

import (
	"context"
	"time"

	"pawl/jobs"
	"pawl/lockrepo"
	"pawl/web"
)

// broken is a database that doesn't answer what the overview asks for.
type broken struct {
	web.Locks
	web.Jobs
	err error
}

func (b broken) List(context.Context, lockrepo.Filter) ([]lockrepo.Info, error) { return nil, b.err }

func (b broken) Spans(context.Context, lockrepo.SpanFilter) ([]lockrepo.Span, error) {
	return nil, b.err
}

func (b broken) StaleClaims(context.Context, lockrepo.StaleFilter) ([]lockrepo.Tenure, error) {
	return nil, b.err
}

func (b broken) Refusals(context.Context, lockrepo.RefusalFilter) ([]lockrepo.Refusal, error) {
	return nil, b.err
}

func (b broken) RefusalGroups(context.Context, time.Time, int) ([]lockrepo.RefusalGroup, error) {
	return nil, b.err
}

func (b broken) Audit(context.Context, lockrepo.AuditFilter) ([]lockrepo.AuditEntry, error) {
	return nil, b.err
}

func (b broken) JobPage(context.Context, jobs.JobFilter) ([]jobs.JobSummary, error) {
	return nil, b.err
}

func (b broken) Counts(context.Context) (jobs.Counts, error) { return jobs.Counts{}, b.err }

func (b broken) Effects(context.Context, jobs.EffectFilter) ([]jobs.EffectInfo, error) {
	return nil, b.err
}

func (b broken) Differences(context.Context, jobs.DifferenceFilter) ([]jobs.EffectDifference, error) {
	return nil, b.err
}

func (b broken) Messages(context.Context, jobs.MessageFilter) ([]jobs.MessageInfo, error) {
	return nil, b.err
}
