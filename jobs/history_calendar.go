package jobs

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"pawl/jobs/schedule"
)

// mostCells is how many periods a calendar shows.
const mostCells = 400

// The states of a [PeriodDay] that has no row.
const (
	DayNotOwed   = "not owed"    // no tick; or none that was planned: from before the job was, or not kept any more
	DayAhead     = "ahead"       // its tick is still to come
	DayUnplanned = "not planned" // its tick has come, and no replica has planned it yet
)

// PeriodDay is one period of a calendar.
type PeriodDay struct {
	Key         string     `json:"key"`
	Start       time.Time  `json:"start"`
	End         time.Time  `json:"end"`
	ScheduledAt *time.Time `json:"scheduled_at"` // its tick; nil: the schedule has none for it
	State       string     `json:"state"`        // as of a [PeriodMark], or not owed, ahead, not planned
	Reason      string     `json:"reason"`
	Revision    int        `json:"revision"` // of the last row; zero: it has none
	Attempts    int        `json:"attempts"`
}

const (
	// The rows of the calendar's keys, what else was owed in its stretch, and the last rows before it: a row of many ticks may
	// reach into it.
	calendarSQL = `
select ` + markedColumns + `, true as newest, p.start_at as start, p.end_at as "end", coalesce(p.last_at, p.scheduled_at) as last_at
  from (select * from pawl.periods where job = @job and key = any (@keys::text[])
        union
        (select * from pawl.periods where job = @job and scheduled_at >= @from and scheduled_at < @to` + notShards + ` order by scheduled_at limit 2 * @most)
        union
        (select * from pawl.periods where job = @job and scheduled_at < @from` + notShards + ` order by scheduled_at desc limit 20)) p
 order by p.start_at, p.key, p.revision`
)

// calendarRow is a period's row.
type calendarRow struct {
	marked
	Start, End, LastAt time.Time
}

// Calendar answers which periods are not done: all those that begin in [from, to), oldest first, with their state. Of a job by
// days that is every date, of others what the schedule's ticks owe, and whatever else was owed. There are at most 400: with as
// many, ask again from the last one's End. It returns [ErrUnknownJob].
func (h *History) Calendar(ctx context.Context, job string, from, to time.Time) (days []PeriodDay, err error) {
	const one = `select ` + jobColumns + `, definition, clock_timestamp() as now from pawl.schedules where job = @job`
	var unknown bool
	err = h.read(ctx, "calendar", func(ctx context.Context, tx pgx.Tx) error {
		jobs, err := h.jobRows(ctx, tx, one, pgx.NamedArgs{"job": job})
		if unknown = err == nil && len(jobs) == 0; err != nil || unknown {
			return err
		}
		if jobs[0].planErr != nil {
			return jobs[0].planErr
		}
		c := calendar{jobRow: &jobs[0], from: from, to: to}
		if err := c.lay(); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, calendarSQL, c.args())
		if err != nil {
			return err
		}
		found, err := pgx.CollectRows(rows, pgx.RowToStructByName[calendarRow])
		days = c.fill(found)
		return err
	})
	if unknown {
		return nil, unknownJob(job)
	}
	return days, err
}

// calendar are the cells of a job's calendar.
type calendar struct {
	*jobRow
	from, to time.Time
	days     []PeriodDay
}

// lay makes a cell of each period that the schedule knows, without rows.
func (c *calendar) lay() error {
	c.days = []PeriodDay{}
	if c.schedule.Manual() {
		return nil
	}
	spec := c.plan.spec()
	spec.Offset = -spec.Offset
	back, err := schedule.Parse(spec) // asked the other way round it says in which period the tick lies
	if err != nil {
		return err
	}
	for t := c.schedule.Next(back.Period(c.from).Start.Add(-time.Second)); !t.IsZero() && len(c.days) < mostCells; t = c.schedule.Next(t) {
		p := c.schedule.Period(t)
		if !p.Start.Before(c.to) {
			break
		}
		if !p.Start.Before(c.from) {
			c.days = append(c.days, PeriodDay{Key: p.Key, Start: p.Start, End: p.End, ScheduledAt: &t, State: c.without(t)})
		}
	}
	if c.schedule.Kind() == schedule.Day {
		c.layDates()
	}
	return nil
}

// without is the state of a tick that has no row.
func (c *calendar) without(tick time.Time) string {
	switch {
	case c.RetiredAt != nil && tick.After(*c.RetiredAt):
		return DayNotOwed
	case tick.After(c.Now):
		return DayAhead
	case tick.After(c.Watermark):
		return DayUnplanned
	}
	return DayNotOwed
}

// layDates adds the dates that have no tick.
func (c *calendar) layDates() {
	known := map[string]bool{}
	for _, d := range c.days {
		known[d.Key] = true
	}
	zone := c.schedule.Zone()
	y, m, d := c.from.In(zone).Date()
	for n := range mostCells + 1 {
		p, err := c.schedule.ParseKey(time.Date(y, m, d+n, 0, 0, 0, 0, time.UTC).Format(time.DateOnly))
		if err != nil || p.Start.Before(c.from) || known[p.Key] {
			continue
		}
		if !p.Start.Before(c.to) {
			break
		}
		c.days = append(c.days, PeriodDay{Key: p.Key, Start: p.Start, End: p.End, State: DayNotOwed})
	}
	c.sort()
}

// sort puts the cells in order, and leaves out what is too many.
func (c *calendar) sort() {
	slices.SortStableFunc(c.days, func(a, b PeriodDay) int { return a.Start.Compare(b.Start) })
	c.days = c.days[:min(len(c.days), mostCells)]
}

// args are what rows are looked for by: with an offset the ticks lie elsewhere than their periods.
func (c *calendar) args() pgx.NamedArgs {
	from, to, keys := c.from, c.to, []string{}
	for _, d := range c.days {
		keys = append(keys, d.Key)
		if t := d.ScheduledAt; t != nil && t.Before(from) {
			from = *t
		} else if t != nil && t.After(to) {
			to = *t
		}
	}
	if len(c.days) == mostCells {
		to = c.days[mostCells-1].End
	}
	return pgx.NamedArgs{"job": c.Job, "keys": keys, "from": from, "to": to, "most": mostCells}
}

// fill tells of each cell what its row says, of a key the last revision. What lies in a row of many ticks has its state.
func (c *calendar) fill(rows []calendarRow) []PeriodDay {
	at := map[string]int{}
	for i, d := range c.days {
		at[d.Key] = i
	}
	for _, r := range rows {
		if r.Ticks > 1 {
			c.stretch(r)
		}
	}
	for _, r := range rows { // in the order of their revisions
		i, known := at[r.Key]
		if !known && (r.Start.Before(c.from) || !r.Start.Before(c.to) || r.Ticks > 1) {
			continue
		}
		if !known {
			i = len(c.days)
			at[r.Key] = i
			c.days = append(c.days, PeriodDay{Key: r.Key, Start: r.Start.UTC(), End: r.End.UTC(), ScheduledAt: ptr(r.ScheduledAt.UTC())})
		}
		c.tell(&c.days[i], r)
	}
	c.sort()
	return c.days
}

func (c *calendar) stretch(r calendarRow) {
	for i := range c.days {
		if t := c.days[i].ScheduledAt; t != nil && !t.Before(r.ScheduledAt) && !t.After(r.LastAt) {
			c.tell(&c.days[i], r)
		}
	}
}

func (c *calendar) tell(d *PeriodDay, r calendarRow) {
	d.State, d.Reason, d.Revision, d.Attempts = r.mark(c.Now).State, r.Reason, r.Revision, r.Attempts
}
