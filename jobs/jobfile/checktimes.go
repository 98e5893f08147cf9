package jobfile

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"pawl/jobs/schedule"
)

// checkTimes parses the schedule and checks all that is about time.
func (r *reader) checkTimes(f *File, job *Job, path string) {
	if job.Schedule == "" {
		return // which has been said
	}
	s, ok := r.parseSchedule(f, job, path)
	if !ok {
		return
	}
	p, err := s.Policy(schedule.Policy{CatchUp: job.CatchUp, Window: job.CatchUpWindow, StartWithin: job.StartWithin, Max: job.CatchUpMax})
	if err != nil {
		r.scheduleError(path, err)
		return
	}
	r.checkPeriod(job, s, path)
	r.checkZone(f, s, path)
	job.Times, job.Period = s, s.Kind()
	r.checkWindow(job, s, path)
	job.CatchUp, job.CatchUpWindow, job.CatchUpMax = p.CatchUp, p.Window, p.Max
	length := shortest(s)
	if job.Overlap == "allow" && length > 0 && job.Timeout > length {
		r.warn(Warning, path+".timeout", "%s is longer than a period (%s), and overlap: allow lets runs pile up.", short(job.Timeout), short(length))
	}
	if job.Overlap == "allow" {
		r.warn(Note, path+".overlap", "allow gives each period a lock of its own, so a target that it fences must carry the period in its name too.")
	}
	if job.Due, err = s.ParseDueBy(job.DueBy); err != nil {
		r.scheduleError(path, err)
	}
	r.checkStart(job, s, path+".start")
}

// parseSchedule returns the job's schedule, or reports all of its errors that don't follow
// from one another.
func (r *reader) parseSchedule(f *File, job *Job, path string) (schedule.Schedule, bool) {
	spec := schedule.Spec{
		Expr: job.Schedule, Zone: job.Timezone, Period: job.Period, Offset: job.PeriodOffset, Seconds: job.Seconds,
		DayMatch: job.DayMatch, Gap: job.DST.Gap, Overlap: job.DST.Overlap, EveryOffset: job.Offset, Jitter: job.Jitter,
	}
	s, err := schedule.Parse(spec)
	ok := err == nil
	var e *schedule.FieldError
	for range 4 { // one turn for each field that can be left out
		if !errors.As(err, &e) {
			break
		}
		inherited := e.Field == "timezone" && !r.written(path+".timezone") && f.Defaults.Timezone != ""
		if inherited {
			r.broken[path] = true // it has been reported once, where it stands
		} else {
			r.scheduleError(path, err)
		}
		switch e.Field {
		case "timezone":
			spec.Zone = ""
		case "period":
			spec.Period = ""
		case "period_offset":
			spec.Offset = 0
		case "offset":
			spec.EveryOffset = 0
		default:
			return s, false
		}
		_, err = schedule.Parse(spec)
	}
	return s, ok
}

// scheduleError reports an error of package schedule in our sentences.
func (r *reader) scheduleError(path string, err error) {
	var e *schedule.FieldError
	if !errors.As(err, &e) {
		r.bad(path, "%s.", err)
		return
	}
	at := path + "." + e.Field
	place := r.where(at).value
	if errors.Is(err, schedule.ErrNever) {
		at = path // the expression says enough
	}
	r.say(Error, place, at, sentence(err, e))
}

// sentence says err, which holds e, as the job file's other issues are said.
func sentence(err error, e *schedule.FieldError) string {
	fix := strings.ToUpper(e.Fix[:1]) + e.Fix[1:]
	if !strings.HasSuffix(fix, "?") {
		fix += "."
	}
	var many *schedule.TicksError
	switch {
	case errors.As(err, &many):
		return fmt.Sprintf("%s, but schedule %q gives %d ticks %s; %d would be refused. %s", e.Value, many.Expr, many.Ticks, many.Where, many.Ticks-1, fix)
	case errors.Is(err, schedule.ErrNever):
		return fmt.Sprintf("%q %s.", e.Value, e.Problem)
	case errors.Is(err, schedule.ErrDays):
		return "day-of-month and day-of-week are both set; cron ORs them. " + fix
	}
	text := fmt.Sprintf("%q %s. %s", e.Value, e.Problem, fix)
	if errors.Is(err, schedule.ErrZoneName) {
		text += "   (tzdata " + schedule.TZVersion() + ", embedded)"
	}
	return text
}

// checkPeriod tells what was inferred, and which weekdays are never owed.
func (r *reader) checkPeriod(job *Job, s schedule.Schedule, path string) {
	if !r.written(path+".period") && !s.Manual() {
		r.warn(Note, path+".schedule", "period is %s, inferred from %q.", s.Kind(), job.Schedule)
	}
	if text := s.OffsetNote(); text != "" {
		severity := Warning
		if weekend := []time.Weekday{time.Saturday, time.Sunday}; slices.Equal(s.NeverOwed(), weekend) {
			severity = Note // which is likely to be meant
		}
		r.say(severity, r.where(path+".period_offset").value, path, text+".")
	}
}

// checkZone warns of a fixed hour without a zone.
func (r *reader) checkZone(f *File, s schedule.Schedule, path string) {
	if !r.written(path+".timezone") && f.Defaults.Timezone == "" && s.FixedHour() {
		r.warn(Warning, path+".schedule", "has a fixed hour but the job has no timezone, so it is UTC. Write timezone: UTC if that is meant.")
	}
}

// shortest returns the length of the shortest of a few periods, 0 when there is none. They
// are those from the beginning of 2025 on, since the answer may not depend on the day of
// the question.
func shortest(s schedule.Schedule) time.Duration {
	least := time.Duration(0)
	tick := s.Next(time.Date(2024, 12, 31, 23, 59, 59, 0, time.UTC))
	for n := 0; n < 60 && !tick.IsZero(); n++ {
		if p := s.Period(tick); least == 0 || p.End.Sub(p.Start) < least {
			least = p.End.Sub(p.Start)
		}
		tick = s.Next(tick)
	}
	return least
}

// checkWindow warns of a window that loses a tick whenever one is planned late.
func (r *reader) checkWindow(job *Job, s schedule.Schedule, path string) {
	longest := s.LongestGap()
	if w := job.CatchUpWindow; w > 0 && w < longest {
		r.warn(Warning, path+".catch_up_window", "%s is shorter than the longest time between two ticks (%s).", short(w), short(longest))
	}
}

// checkStart reads start in the job's zone.
func (r *reader) checkStart(job *Job, s schedule.Schedule, path string) {
	if job.Start == "" {
		return
	}
	for _, layout := range []string{"2006-01-02", "2006-01-02T15:04", "2006-01-02T15:04:05", time.RFC3339} {
		if t, err := time.ParseInLocation(layout, job.Start, s.Zone()); err == nil {
			job.StartAt = t.UTC()
			return
		}
	}
	r.bad(path, "%q is not a time. Write one like 2026-09-16, 2026-09-16T02:15 or 2026-09-16T02:15:00Z.", job.Start)
}
