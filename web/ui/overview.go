package ui

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"pawl/jobs"
	"pawl/lockrepo"
	"pawl/lockrepo/approvals"
)

const (
	perOverview   = 10  // rows of a panel whose list has a page of its own
	mostHolders   = 100 // live leases that are looked at, by name
	shownHolders  = 40  // and that are shown, those in trouble first
	lanesOverview = 12
	eachOverview  = 12 // leases of one lane
)

// overviewPage is what is true now: is something wrong, who holds what, how did it get here, what comes next.
type overviewPage struct {
	Wrong     []string // of the job file
	Approvals Panel[approvals.Request]
	Effects   Panel[jobs.EffectInfo] // uncertain ones
	Unmatched Panel[jobs.EffectDifference]
	Messages  Panel[jobs.MessageInfo] // dead ones
	Claims    Panel[lockrepo.Tenure]
	Holders   Panel[lockRow]
	Timeline  timeline
	Jobs      Panel[jobs.JobSummary] // those in trouble first
	Writers   Panel[lockrepo.RefusalGroup]
	Refusals  Panel[lockrepo.Refusal] // of the last hour
	Passed    Panel[lockrepo.Refusal] // what log mode let pass in the last day: apart, or it would push the others out
	Audit     Panel[lockrepo.AuditEntry]
	Counts    Panel[jobs.Counts] // one row
	Strip     []figure
	Status    string     // read out when it changes: problems only
	Oldest    *time.Time // when the first delivery that waits was due
	Late      int        // holders that are late with their beat
	Trouble   int        // jobs in trouble; one more than there are shown at most: there may be more
	now       time.Time
}

// figure is one number of the strip, and the list that it counts. Its class is empty, warn (watch it) or bad (act).
type figure struct{ Figure, What, Href, Class string }

// Alert reports a stale claim that nobody has taken over.
func (p overviewPage) Alert() bool { return slices.ContainsFunc(p.Claims.Rows, untaken) }

// Alone reports that nothing was answered.
func (p overviewPage) Alone() bool { return !slices.Contains(p.aways(), "") }

// Stands reports that a part was not answered, and others were.
func (p overviewPage) Stands() bool {
	return !p.Alone() && slices.ContainsFunc(p.aways(), func(away string) bool { return away != "" })
}

func (p overviewPage) aways() []string {
	return []string{p.Counts.Away, p.Effects.Away, p.Unmatched.Away, p.Messages.Away, p.Claims.Away, p.Holders.Away, p.Timeline.Away, p.Jobs.Away, p.Writers.Away, p.Refusals.Away, p.Passed.Away, p.Audit.Away}
}

// overview answers 503 when nothing could be read, with the page all the same: it says what is wrong.
func (u *UI) overview(q *request) error {
	data := share(q.r.Context(), u.shared, "overview", u.readOverview)
	v := view{Name: "overview", Title: "Overview", Nav: "overview", Now: data.now, Data: data}
	if !data.Alone() {
		return u.render(q, v)
	}
	u.cfg.Logger.WarnContext(q.r.Context(), "ui: overview is not answered", "reason", data.Counts.Away)
	q.w.Header().Set("Retry-After", "2")
	v.Live = true
	return u.write(q, http.StatusServiceUnavailable, u.page(q, v))
}

func (u *UI) readOverview(ctx context.Context) overviewPage {
	p := overviewPage{Wrong: u.cfg.Wrong(), now: time.Now()}
	began, hour := p.now, p.now.Add(-time.Hour) // p.now becomes the database's meanwhile
	together(
		func() { u.readCounts(ctx, &p) },
		func() { p.Approvals = u.readApprovals(ctx) },
		func() {
			p.Claims = panel(ctx, perOverview, func(ctx context.Context, n int) ([]lockrepo.Tenure, error) {
				return u.cfg.Locks.StaleClaims(ctx, lockrepo.StaleFilter{Limit: n})
			})
		},
		func() {
			p.Effects = panel(ctx, perOverview, func(ctx context.Context, n int) ([]jobs.EffectInfo, error) {
				return u.cfg.Jobs.Effects(ctx, jobs.EffectFilter{State: jobs.EffectUncertain, Limit: n})
			})
		},
		func() {
			p.Unmatched = panel(ctx, perOverview, func(ctx context.Context, n int) ([]jobs.EffectDifference, error) {
				return u.cfg.Jobs.Differences(ctx, jobs.DifferenceFilter{Limit: n})
			})
		},
		func() {
			p.Messages = panel(ctx, perOverview, func(ctx context.Context, n int) ([]jobs.MessageInfo, error) {
				return u.cfg.Jobs.Messages(ctx, jobs.MessageFilter{State: "dead", Limit: n})
			})
		},
		func() { p.Holders, p.Late = u.readHolders(ctx) },
		func() {
			p.Timeline = u.readTimeline(ctx, lockrepo.SpanFilter{Locks: lanesOverview}, 30*time.Minute, eachOverview).closer(began)
		},
		func() { p.Jobs, p.Trouble = u.readTrouble(ctx) },
		func() { p.Writers = u.readWriters(ctx, hour, mostWriters) },
		func() {
			p.Refusals = u.readKind(ctx, lockrepo.RefusalFilter{Kind: lockrepo.Refused, Since: hour})
		},
		func() {
			p.Passed = u.readKind(ctx, lockrepo.RefusalFilter{Kind: lockrepo.Passed, Since: began.Add(-24 * time.Hour)})
		},
		func() {
			p.Audit = panel(ctx, perOverview, func(ctx context.Context, n int) ([]lockrepo.AuditEntry, error) {
				return u.cfg.Locks.Audit(ctx, lockrepo.AuditFilter{Limit: n})
			})
		},
	)
	p.strip()
	return p
}

const mostWriters = 999

func (u *UI) readKind(ctx context.Context, f lockrepo.RefusalFilter) Panel[lockrepo.Refusal] {
	return panel(ctx, perOverview, func(ctx context.Context, n int) ([]lockrepo.Refusal, error) {
		f.Limit = n
		return u.cfg.Locks.Refusals(ctx, f)
	})
}

// readCounts also learns the database's time. What is an age there is a time here.
func (u *UI) readCounts(ctx context.Context, p *overviewPage) {
	p.Counts = panel(ctx, 1, func(ctx context.Context, _ int) ([]jobs.Counts, error) {
		c, err := u.cfg.Jobs.Counts(ctx)
		return []jobs.Counts{c}, err
	})
	for _, c := range p.Counts.Rows {
		p.now = cmp.Or(c.Now, p.now)
		if c.QueueDepth > 0 {
			at := p.now.Add(-time.Duration(c.QueueOldest * float64(time.Second))).Round(time.Second)
			p.Oldest = &at
		}
	}
}

func (u *UI) readApprovals(ctx context.Context) Panel[approvals.Request] {
	if u.cfg.Approvals == nil {
		return Panel[approvals.Request]{}
	}
	return panel(ctx, perOverview, func(ctx context.Context, n int) ([]approvals.Request, error) {
		return u.cfg.Approvals.List(ctx, approvals.Filter{State: approvals.Pending, Limit: n})
	})
}

// readHolders is who holds a lock, those in trouble first, and how many of them are late.
func (u *UI) readHolders(ctx context.Context) (Panel[lockRow], int) {
	p := panel(ctx, mostHolders, func(ctx context.Context, n int) ([]lockRow, error) {
		infos, err := u.cfg.Locks.List(ctx, lockrepo.Filter{State: lockrepo.Held, Limit: n})
		rows := make([]lockRow, len(infos))
		for i, l := range infos {
			rows[i] = rowOf(l)
		}
		return rows, err
	})
	late := 0
	for _, r := range p.Rows {
		if r.Late {
			late++
		}
	}
	slices.SortStableFunc(p.Rows, func(a, b lockRow) int {
		return cmp.Or(strings.Compare(pick(a.Late, "0", "1"), pick(b.Late, "0", "1")), strings.Compare(a.Lock, b.Lock))
	})
	if len(p.Rows) > shownHolders {
		p.Rows, p.More = p.Rows[:shownHolders], true
	}
	return p, late
}

// readTrouble is jobs, those in trouble first, and how many of them are.
func (u *UI) readTrouble(ctx context.Context) (Panel[jobs.JobSummary], int) {
	p := panel(ctx, mostHolders, func(ctx context.Context, n int) ([]jobs.JobSummary, error) {
		return u.cfg.Jobs.JobPage(ctx, jobs.JobFilter{State: jobs.JobsTrouble, Limit: n})
	})
	trouble := len(p.Rows)
	if p.More {
		trouble++
	}
	if p.Away != "" || trouble > perOverview {
		p.Rows, p.More = p.Rows[:min(perOverview, len(p.Rows))], trouble > perOverview
		return p, trouble
	}
	others := panel(ctx, 2*perOverview, func(ctx context.Context, n int) ([]jobs.JobSummary, error) {
		return u.cfg.Jobs.JobPage(ctx, jobs.JobFilter{Limit: n})
	})
	p.Away, p.More = others.Away, others.More
	for _, j := range others.Rows {
		shown := slices.ContainsFunc(p.Rows, func(t jobs.JobSummary) bool { return t.Job == j.Job })
		if j.RetiredAt == nil && !shown {
			p.Rows = append(p.Rows, j)
		}
	}
	if len(p.Rows) > perOverview {
		p.Rows, p.More = p.Rows[:perOverview], true
	}
	return p, trouble
}
