package ui

import (
	"context"
	"time"

	"pawl/jobs"
)

// calendar answers which periods are not done, month by month.
type calendar struct {
	Days   Panel[jobs.PeriodDay]
	From   time.Time
	To     time.Time
	ByDay  bool // each period is a date, so that weeks can be seen
	ByHour bool // each period is an hour: they stand by their day
	Before string
	After  string // empty: the next stretch is still to come
}

// month is a part of the calendar: a month, or the day of some hours.
type month struct {
	Name  string
	Cells []cell
}

// cell is one period.
type cell struct {
	jobs.PeriodDay
	Text   string // the day of the month, the hour, or the key
	Column int    // Monday is 1; 0: it follows the one before
}

// Says is its state in words.
func (c cell) Says() string {
	if c.State == "late" && c.Complete {
		return "complete, but late"
	}
	return c.State
}

// mostCells bounds what one page shows; the newest are kept.
const mostCells = 200

// stretchOf is how far a job's calendar reaches, by what its periods are.
func stretchOf(period string) (back, ahead time.Duration) {
	const day = 24 * time.Hour
	switch period {
	case "day":
		return 91 * day, 14 * day
	case "week":
		return 364 * day, 28 * day
	case "month":
		return 1095 * day, 62 * day
	case "hour":
		return 7 * day, day / 2
	default:
		return day, day / 4
	}
}

// readCalendar reads a stretch of a job's periods that ends at to, or a little after now.
func (u *UI) readCalendar(ctx context.Context, job, period string, to time.Time) calendar {
	back, ahead := stretchOf(period)
	now := time.Now().UTC().Truncate(time.Hour)
	if to.IsZero() || to.After(now.Add(ahead)) {
		to = now.Add(ahead)
	}
	c := calendar{From: to.Add(-back - ahead), To: to, ByDay: period == "day", ByHour: period == "hour"}
	c.Days = panel(ctx, mostCells, func(ctx context.Context, n int) ([]jobs.PeriodDay, error) {
		days, err := u.cfg.Jobs.Calendar(ctx, job, c.From, c.To)
		return days[max(0, len(days)-n+1):], err
	})
	if len(c.Days.Rows) == mostCells {
		c.From = c.Days.Rows[0].Start
	}
	c.Before = c.From.Format(time.RFC3339)
	if to.Before(now.Add(ahead)) {
		c.After = to.Add(back + ahead).Format(time.RFC3339)
	}
	return c
}

// Months groups the periods by the month that they begin in; hours by their day.
func (c calendar) Months() []month {
	var all []month
	for _, d := range c.Days.Rows {
		name := c.nameOf(d)
		if len(all) == 0 || all[len(all)-1].Name != name {
			all = append(all, month{Name: name})
		}
		m := &all[len(all)-1]
		m.Cells = append(m.Cells, c.cell(d, len(m.Cells) == 0))
	}
	return all
}

func (c calendar) nameOf(d jobs.PeriodDay) string {
	if date, err := time.Parse(time.DateOnly, d.Key); c.ByDay && err == nil {
		return date.Format("January 2006")
	}
	if hour, ok := c.hour(d); ok {
		return hour.Format("Mon 2 Jan 2006")
	}
	return d.Start.UTC().Format("January 2006")
}

// hour is when a period of an hour begins, on its own clock.
func (c calendar) hour(d jobs.PeriodDay) (time.Time, bool) {
	at, err := time.Parse("2006-01-02T15Z07:00", d.Key)
	return at, c.ByHour && err == nil
}

func (c calendar) cell(d jobs.PeriodDay, first bool) cell {
	if hour, ok := c.hour(d); ok {
		return cell{PeriodDay: d, Text: hour.Format("15")}
	}
	date, err := time.Parse(time.DateOnly, d.Key)
	if !c.ByDay || err != nil {
		return cell{PeriodDay: d, Text: d.Key}
	}
	out := cell{PeriodDay: d, Text: date.Format("2")}
	if first {
		out.Column = (int(date.Weekday())+6)%7 + 1
	}
	return out
}

// Undone counts what somebody may have to look at.
func (c calendar) Undone() int {
	n := 0
	for _, d := range c.Days.Rows {
		switch {
		case d.State == "missed", d.State == "dead", d.State == "held", d.State == "late" && !d.Complete:
			n++
		}
	}
	return n
}

// pageCalendar is a calendar with the page that it is on.
type pageCalendar struct {
	Page     *page
	Job      string
	Calendar calendar
}

func calendarOf(p *page) pageCalendar {
	data, _ := p.Data.(periodsPage) // no other page has one
	return pageCalendar{p, data.Job.Job, data.Calendar}
}
