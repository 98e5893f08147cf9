package jobs

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"pawl/jobs/schedule"
)

// plannedColumns are what a planned is scanned from.
const plannedColumns = `job, app, lock, definition, watermark, clock_timestamp(), retired_at, coalesce(retired_by, ''), generation,
       paused_at, paused_until, resume, renamed`

// planned is one schedule row, as it was locked.
type planned struct {
	definition
	stored                          []byte
	unreadable                      error // why stored isn't a definition: another version's, perhaps
	schedule                        schedule.Schedule
	watermark, now                  time.Time
	next                            *time.Time
	retiredAt, pausedAt, pausedTill *time.Time
	retiredBy, resume               string
	generation                      int64
	ticks                           []schedule.Tick
	renamed                         bool // it had another name: its lock is of that one
	held                            bool // the ticks came while the job was paused
	runs                            int
}

func scanPlanned(row pgx.CollectableRow) (*planned, error) {
	var p planned
	var job, app, lock string
	err := row.Scan(&job, &app, &lock, &p.stored, &p.watermark, &p.now, &p.retiredAt, &p.retiredBy, &p.generation,
		&p.pausedAt, &p.pausedTill, &p.resume, &p.renamed)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(p.stored, &p.definition); err != nil {
		p.unreadable = fmt.Errorf("jobs: stored definition of %s: %w", job, err)
	}
	p.Job, p.App, p.Lock, p.runs = job, app, lock, max(p.Runs, 1)
	return &p, nil
}

// keepsLock is the definition with the stored lock, if the job was renamed and says nothing of its lock.
func (p *planned) keepsLock(d definition) definition {
	if p.renamed && d.Lock == lockOfJob(d.Job) {
		d.Lock = p.Lock
	}
	return d
}

func (p *planned) retired() bool { return p.retiredAt != nil }

// resumes reports whether the job's pause has ended by itself.
func (p *planned) resumes() bool { return p.pausedTill != nil && !p.pausedTill.After(p.now) }

func (p *planned) parse() (schedule.Schedule, error) {
	if p.unreadable != nil {
		return schedule.Schedule{}, p.unreadable
	}
	return p.definition.parse()
}

// until is how far the ticks can be listed: up to now, or to the end of the pause.
func (p *planned) until() time.Time {
	if p.resumes() {
		return *p.pausedTill
	}
	return p.now
}

// stretch returns where the next pass ends, and whether its ticks are held: a pass lies before the pause or in it.
func (p *planned) stretch() (to time.Time, held bool) {
	to = p.until()
	switch {
	case p.pausedAt == nil:
		return to, false
	case p.watermark.Before(*p.pausedAt):
		if p.pausedAt.Before(to) {
			to = *p.pausedAt
		}
		return to, false
	}
	return to, true
}

// nextAt is when the schedule has to be looked at again: at its next tick, or when its pause ends.
func (p *planned) nextAt(s schedule.Schedule) *time.Time {
	next := nextAt(s, p.watermark)
	if p.pausedAt != nil && p.pausedTill != nil && (next == nil || p.pausedTill.Before(*next)) {
		next = p.pausedTill
	}
	return next
}

func nextAt(s schedule.Schedule, after time.Time) *time.Time {
	if next := s.Next(after); !next.IsZero() {
		return &next
	}
	return nil
}

// planCache keeps parsed schedules, by definition. A nil one keeps nothing.
type planCache struct {
	mu     sync.Mutex
	parsed map[string]schedule.Schedule
	told   map[string]bool
}

// fill lists the ticks between the watermark and now, and moves both on.
func (c *planCache) fill(p *planned) error {
	if p.unreadable != nil {
		return p.unreadable
	}
	s, err := c.get(p)
	if err != nil {
		return err
	}
	policy, err := s.Policy(p.policy())
	if err != nil {
		return err
	}
	to, held := p.stretch()
	if held { // all of them, at little cost
		policy = schedule.Policy{CatchUp: schedule.CatchUpLatest}
	}
	p.schedule, p.held = s, held
	p.ticks, p.watermark = s.Ticks(p.watermark, to, policy)
	p.next = p.nextAt(s)
	return nil
}

func (c *planCache) get(p *planned) (schedule.Schedule, error) {
	if c == nil {
		return p.parse()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if s, ok := c.parsed[string(p.stored)]; ok {
		return s, nil
	}
	s, err := p.parse()
	if err != nil {
		return s, err
	}
	if c.parsed == nil || len(c.parsed) > 10000 {
		c.parsed = map[string]schedule.Schedule{}
	}
	c.parsed[string(p.stored)] = s
	return s, nil
}

// once calls f the first time that it is asked for key.
func (c *planCache) once(key string, f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.told == nil {
		c.told = map[string]bool{}
	}
	if !c.told[key] {
		c.told[key] = true
		f()
	}
}

// rows are the rows of a pass: what is owed, and one for each unbroken stretch of what is not. blocker is the period that
// runs or waits under the job's lock, for a job that skips then.
func (p *planned) rows(blocker string) []periodRow {
	var rows []periodRow
	for _, t := range p.ticks {
		x := p.row(t)
		switch {
		case p.held:
			x.State, x.Reason = "held", "paused"
		case t.Reason != "":
			x.State, x.Reason = "missed", t.Reason
		case p.Overlap == OverlapSkip && blocker != "":
			x.State, x.Reason, x.BlockedBy = "skipped", "overlap", blocker
		case p.Overlap == OverlapSkip:
			blocker = p.Job + " " + t.Period.Key
		}
		x.Short = x.State != stateOpen && p.schedule.Kind().Short()
		if n := len(rows); x.Short && n > 0 && rows[n-1].State == x.State && rows[n-1].Reason == x.Reason {
			rows[n-1].LastAt = x.LastAt
			rows[n-1].Ticks += x.Ticks
			continue
		}
		rows = append(rows, x)
	}
	for i := range rows { // only the first one may go on with the last row of the pass before
		rows[i].Short = rows[i].Short && i == 0
	}
	return slices.Clip(rows)
}

// row is the row of one tick that is owed.
func (p *planned) row(t schedule.Tick) periodRow {
	jitter := p.schedule.JitterOf(p.Job, t.Period.Key)
	late := p.LateAfter
	if late == 0 {
		late = p.schedule.LateAfter(t.At)
	}
	x := periodRow{
		Job: p.Job, Key: t.Period.Key, Revision: 1, Lock: p.lockOf(t.Period.Key), State: stateOpen, Origin: originSchedule,
		StartAt: t.Period.Start, EndAt: t.Period.End, At: t.At, LastAt: t.To, Ticks: max(t.Count, 1), Most: p.runs,
		LateAt: ptr(t.At.Add(jitter + late)),
	}
	if jitter > 0 {
		x.NotBefore = ptr(t.At.Add(jitter))
	}
	if p.StartWithin > 0 {
		x.StartBy = ptr(t.At.Add(p.StartWithin))
	}
	if d, err := p.schedule.ParseDueBy(p.DueBy); err == nil && d != 0 {
		x.DueAt = ptr(p.schedule.DueAt(d, t.At))
	}
	return x
}

func ptr[T any](v T) *T { return &v }
