package schedule

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Schedule is a parsed [Spec]. It is a value, safe for use by many goroutines; the
// zero Schedule is a manual one in UTC.
type Schedule struct {
	expr   string
	loc    *time.Location
	kind   Kind
	offset int
	form        // where the ticks come from
	dst         // which passes of the wall clock count
	fixed  bool // the hours are numbers, lists or ranges
	jitter time.Duration
	gap    time.Duration // longest nominal time between two ticks; 0 for short kinds
}

// form is the source of ticks: wall times, an interval, or neither (manual).
type form struct {
	walls walls // cron fields or @at; nil for @every and @manual
	every int64 // seconds between ticks of @every, else 0
	shift int64 // seconds that @every's ticks lie after the Unix epoch
}

// Parse checks spec and returns its schedule. The error is a [*FieldError].
func Parse(spec Spec) (Schedule, error) {
	s := Schedule{expr: strings.Join(strings.Fields(spec.Expr), " "), offset: spec.Offset, jitter: spec.Jitter}
	if err := checkWords(spec); err != nil {
		return Schedule{}, err
	}
	var err error
	if s.loc, err = loadZone(spec.Zone); err != nil {
		return Schedule{}, err
	}
	w, err := s.read(spec)
	if err != nil {
		return Schedule{}, err
	}
	if s.walls != nil {
		s.fixed = !w.wildHour()
		s.dst = newDST(spec, w.wildHour())
		if err := s.checkFires(); err != nil {
			return Schedule{}, err
		}
	}
	s.kind = cmp.Or(spec.Period, w.infer())
	if err := s.checkOffset(spec.Offset); err != nil {
		return Schedule{}, err
	}
	if err := s.checkOnce(); err != nil {
		return Schedule{}, err
	}
	if !s.kind.Short() {
		s.gap = s.longestGap()
	}
	return s, nil
}

// read sets the form that spec's expression asks for and returns what was written.
func (s *Schedule) read(spec Spec) (w written, err error) {
	name, rest, _ := strings.Cut(s.expr, " ")
	switch {
	case s.expr == "":
		err = badExpr(spec, "is empty", `write five cron fields, "@daily", "@every 15m", "@at 2026-09-16T02:15" or "@manual"`)
	case strings.Contains(s.expr, "TZ="):
		err = badExpr(spec, "names a time zone", "put the zone in the timezone field")
	case name == "@every":
		s.every, s.shift, err = readEvery(spec, rest)
	case name == "@at":
		s.walls, err = readAt(spec, rest)
	case s.expr == "@manual":
	default:
		s.walls, w, err = readCron(spec, s.expr)
	}
	if err == nil && spec.EveryOffset != 0 && s.every == 0 {
		err = &FieldError{"offset", spec.EveryOffset.String(), "has no @every to move", "remove it, or write schedule: \"@every D\""}
	}
	return w, err
}

// checkWords checks the fields that hold one word of a few, and the offset's range.
func checkWords(spec Spec) error {
	for _, f := range []struct {
		field, value string
		words        []string
	}{
		{"period", string(spec.Period), []string{"day", "hour", "week", "month", "tick"}},
		{"day_match", spec.DayMatch, []string{"or", "and"}},
		{"dst.gap", spec.Gap, []string{"after", "skip"}},
		{"dst.overlap", spec.Overlap, []string{"first", "second", "both"}},
	} {
		if f.value != "" && !slices.Contains(f.words, f.value) {
			return &FieldError{f.field, f.value, "is not a choice", "write one of " + strings.Join(f.words, ", ")}
		}
	}
	if spec.Offset < -maxOffset || spec.Offset > maxOffset {
		return &FieldError{"period_offset", strconv.Itoa(spec.Offset), "is out of range", "write a number from -366 to 366"}
	}
	if spec.Jitter < 0 {
		return &FieldError{"jitter", spec.Jitter.String(), "is negative", "write a duration like 30s or 10m"}
	}
	return nil
}

const maxOffset = 366

// checkOffset refuses an offset where there is no neighbour to shift to.
func (s Schedule) checkOffset(offset int) error {
	_, at := s.walls.(once)
	if offset == 0 || s.kind != PerTick || !at && !s.Manual() {
		return nil
	}
	return &FieldError{
		"period_offset", strconv.Itoa(offset),
		"has no other tick to shift to", "remove it, or write period: day, hour, week or month",
	}
}

func badExpr(spec Spec, problem, fix string) error {
	return &FieldError{"schedule", spec.Expr, problem, fix}
}

// Kind returns the kind of period that a tick owes, declared or inferred.
func (s Schedule) Kind() Kind { return cmp.Or(s.kind, PerTick) }

// Manual reports whether the schedule has no ticks and runs only when triggered.
func (s Schedule) Manual() bool { return s.walls == nil && s.every == 0 }

// FixedHour reports whether the hours are written as numbers, lists or ranges (those of
// "@daily" and "@at" are), so that the zone and its changes of clocks decide when a
// tick comes. An hour "*" or "*/n", @every and @manual have none.
func (s Schedule) FixedHour() bool { return s.fixed }

// Zone returns the location whose wall clock the schedule follows, never nil.
func (s Schedule) Zone() *time.Location {
	if s.loc == nil {
		return time.UTC
	}
	return s.loc
}

// String returns the expression as written and its zone: "15 2 * * * Europe/Berlin".
func (s Schedule) String() string {
	return cmp.Or(s.expr, "@manual") + " " + s.Zone().String()
}
