package ui_test

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"pawl/jobs"
	"pawl/lockrepo"
	"pawl/lockrepo/approvals"
	"pawl/lockrepo/keys"
)

// world has rows of the worst kind, or, empty, none. It stands for all that the pages read, so that each page is the same
// every time.
type world struct {
	empty bool
	least int // rows of each list
}

// some rows are one with everything, one with nothing that may be absent, and one more for each further state.
func some[T any](w world, states int, set func(*T, int)) (all []T) {
	for i := range max(2, states, w.least) {
		row := filled[T](i, i == 1)
		if set != nil {
			set(&row, i)
		}
		all = append(all, row)
	}
	if w.empty {
		return nil
	}
	return all
}

// only is a single row.
func only[T any](w world, none error, set func(*T, int)) (row T, err error) {
	if w.empty {
		return row, none
	}
	return some(world{}, 1, set)[0], nil
}

func pick[T any](n int, of ...T) T { return of[n%len(of)] }

func lock(l *lockrepo.Info, i int) {
	l.State = pick(i, lockrepo.Held, lockrepo.Free, lockrepo.Stale)
	l.TTL, l.ReadAt = lockrepo.Seconds(30*time.Second), when
	ends := when.Add(pick(i, 20*time.Second, 0, -2*time.Minute))
	if l.ExpiresAt != nil {
		l.ExpiresAt = &ends
	}
}

func (w world) List(_ context.Context, f lockrepo.Filter) ([]lockrepo.Info, error) {
	return slices.DeleteFunc(some(w, 3, lock), func(l lockrepo.Info) bool { return f.State != "" && l.State != f.State }), nil
}

func (w world) Show(context.Context, string) (lockrepo.Info, error) {
	return only(w, lockrepo.ErrNotFound, lock)
}

func tenure(l *lockrepo.Tenure, i int) {
	l.How = pick(i, "taken_over", "expired", "forced", "released", "reacquired")
}

func (w world) History(context.Context, string, int, int64) ([]lockrepo.Tenure, error) {
	return some(w, 5, tenure), nil
}

func (w world) StaleClaims(context.Context, lockrepo.StaleFilter) ([]lockrepo.Tenure, error) {
	return some(w, 3, tenure), nil
}

func (w world) TenureCounts(context.Context, string) (ended, live int, err error) { return 5, 1, nil }

func (w world) Spans(context.Context, lockrepo.SpanFilter) ([]lockrepo.Span, error) {
	return some(w, 4, func(s *lockrepo.Span, i int) {
		s.AcquiredAt = when.Add(-time.Duration(20-i) * time.Minute)
		s.How = pick(i, "taken_over", "held", "forced", "expired")
	}), nil
}

func (w world) Refusals(context.Context, lockrepo.RefusalFilter) ([]lockrepo.Refusal, error) {
	return some[lockrepo.Refusal](w, 2, nil), nil
}

func (w world) RefusalGroups(context.Context, time.Time, int) ([]lockrepo.RefusalGroup, error) {
	return some[lockrepo.RefusalGroup](w, 2, nil), nil
}

func (w world) Waiters(context.Context, string, int) ([]lockrepo.Waiter, error) {
	return some[lockrepo.Waiter](w, 2, nil), nil
}

func (w world) Audit(context.Context, lockrepo.AuditFilter) ([]lockrepo.AuditEntry, error) {
	return some(w, 3, func(e *lockrepo.AuditEntry, i int) { e.Action = pick(i, "force_release", "pause", script) }), nil
}

func (w world) AuditActions(context.Context) ([]string, error) {
	return []string{"force_release", "pause"}, nil
}

func (w world) Counts(context.Context) (jobs.Counts, error) {
	if w.empty {
		return jobs.Counts{Now: when}, nil
	}
	return jobs.Counts{Now: when, Held: 10001, Stale: 1, Open: 3, Running: 1, OnHold: 1, Dead: 2, Missed: 10001, Refusals: 7, QueueDepth: 4, QueueOldest: 20}, nil
}

var healths = []string{"ok", "late", "overdue", "missed", "dead", "paused", "retired", "running", "waiting"}

func summary(s *jobs.JobSummary, i int) {
	s.Health, s.Schedule = healths[i%len(healths)], "0 2 * * *"
	for n := range s.Last14 {
		s.Last14[n].State = pick(n+i, "complete", "late", "missed", "dead", "running", "open", "held", "skipped", "cancelled")
	}
	if s.PausedAt != nil && s.Health != "paused" {
		s.PausedAt, s.PausedUntil = nil, nil
	}
	if s.RetiredAt != nil && s.Health != "retired" {
		s.RetiredAt = nil
	}
	if s.LastRun != nil {
		runRow(s.LastRun, i)
	}
}

func (w world) JobPage(context.Context, jobs.JobFilter) ([]jobs.JobSummary, error) {
	return some(w, len(healths), summary), nil
}

func (w world) Job(context.Context, string) (jobs.JobSummary, error) {
	return only(w, jobs.ErrUnknownJob, summary)
}

func runRow(r *jobs.RunRecord, i int) {
	r.State = pick(i, "failed", "running", "complete", "lost", "timed_out", "drained", "cancelled")
	if r.State == "running" {
		r.EndedAt = nil
	}
}

func (w world) Runs(context.Context, jobs.RunFilter) ([]jobs.RunRecord, error) {
	return some(w, 7, runRow), nil
}

func (w world) Run(context.Context, uuid.UUID) (jobs.RunDetail, error) {
	return only(w, jobs.ErrUnknownRun, func(d *jobs.RunDetail, i int) {
		runRow(&d.RunRecord, i)
		d.Lease.How, d.Period.State = "taken_over", "dead"
		for n := range d.Events {
			d.Events[n].Kind = pick(n, "acquired", "taken_over")
		}
	})
}

func (w world) Periods(context.Context, jobs.PeriodFilter) ([]jobs.PeriodRecord, error) {
	return some(w, 8, period), nil
}

func period(p *jobs.PeriodRecord, i int) {
	p.State = pick(i, "complete", "open", "running", "dead", "missed", "skipped", "held", "cancelled")
}

func (w world) Latest(context.Context, string, string) (jobs.PeriodRecord, error) {
	return only(w, jobs.ErrUnknownJob, period)
}

func (w world) Current(context.Context, string) (string, error) { return "2026-09-16", nil }

func (w world) Queue(context.Context) (jobs.QueueState, error) {
	if w.empty {
		return jobs.QueueState{}, nil
	}
	return filled[jobs.QueueState](0, false), nil
}

func (w world) Calendar(context.Context, string, time.Time, time.Time) ([]jobs.PeriodDay, error) {
	return some[jobs.PeriodDay](w, 9, nil), nil
}

// asked is what the pages read of approvals, and keyring of keys: their lists have the name of another.
type asked struct{ world }

func request(r *approvals.Request, i int) {
	r.Action, r.State = approvals.ForceRelease, pick(i, approvals.Pending, approvals.Expired, approvals.Approved, approvals.Declined, approvals.Stale)
	r.ExpiresAt = when.Add(10 * time.Minute)
	if r.State == approvals.Pending {
		r.DecidedBy, r.DecidedByID, r.DecidedAt, r.Self = "", "", nil, false
	}
}

func (w asked) List(context.Context, approvals.Filter) ([]approvals.Request, error) {
	return some(w.world, 5, request), nil
}

func (w asked) Get(context.Context, int64) (approvals.Request, error) {
	return only(w.world, approvals.ErrNotFound, request)
}

func (w asked) SingleOperator(context.Context) (bool, error) { return false, nil }

type keyring struct{ world }

func (w keyring) List(context.Context) ([]keys.Key, error) {
	return some(w.world, 2, func(k *keys.Key, i int) {
		k.ID, k.Role = pick(i, "abcdefghijkl", "mnopqrstuvwx"), pick(i, keys.Operator, keys.Reader)
		if i == 0 {
			k.RevokedAt, k.ExpiresAt = nil, nil
		}
	}), nil
}

func (w world) Why(context.Context, string, string) (jobs.Why, error) {
	return only[jobs.Why](w, jobs.ErrUnknownJob, nil)
}

func effect(e *jobs.EffectInfo, i int) {
	e.State, e.Period = pick(i, jobs.EffectUncertain, jobs.EffectIntended, jobs.EffectFailed, jobs.EffectDone, jobs.EffectDropped), "dead"
}

func (w world) Effects(context.Context, jobs.EffectFilter) ([]jobs.EffectInfo, error) {
	return some(w, 5, effect), nil
}

func (w world) Artifacts(context.Context, jobs.ArtifactFilter) ([]jobs.Artifact, error) {
	return some[jobs.Artifact](w, 2, nil), nil
}

func (w world) ArtifactVersions(context.Context, string, int64, int) ([]jobs.Artifact, error) {
	return some[jobs.Artifact](w, 2, nil), nil
}

func (w world) ShardPage(_ context.Context, _, _ string, f jobs.ShardFilter) (jobs.ShardPage, error) {
	rows := some(w, 4, func(s *jobs.ShardRecord, i int) {
		s.State, s.Index = pick(i, "dead", "open", "running", "complete"), i
	})
	if w.empty {
		return jobs.ShardPage{}, nil
	}
	return jobs.ShardPage{
		Rows: rows[:min(len(rows), f.Limit)], All: 4, Complete: 1, Done: 7, Total: 70, Counts: map[string]int{"dead": 1, "open": 1, "running": 1, "complete": 1},
	}, nil
}

func (w world) Differences(context.Context, jobs.DifferenceFilter) ([]jobs.EffectDifference, error) {
	return some(w, 5, func(d *jobs.EffectDifference, i int) {
		d.Kind = pick(i, jobs.DifferenceAbsent, jobs.DifferenceStray, jobs.DifferenceBoth, jobs.DifferenceStray, jobs.DifferenceStray)
		d.State, d.Period = pick(i, jobs.EffectDone, "", jobs.EffectDone, jobs.EffectUncertain, jobs.EffectFailed), pick(i, "complete", "", "dead")
	}), nil
}

func (w world) Messages(_ context.Context, f jobs.MessageFilter) ([]jobs.MessageInfo, error) {
	return some(w, 3, func(m *jobs.MessageInfo, i int) {
		m.State, m.Waits, m.Behind = "dead", "decision", 2000*i
		if f.State == jobs.MessageWaiting {
			m.State, m.Waits = pick(i, "running", "open", "open"), pick(i, "", "dead", "")
		}
	}), nil
}

func (w world) Dead(_ context.Context, _ string, limit int) ([]jobs.PeriodRecord, error) {
	all := some(w, 2, func(p *jobs.PeriodRecord, _ int) { p.State = "dead" })
	return all[:min(len(all), limit)], nil
}
