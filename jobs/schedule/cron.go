package schedule

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	"github.com/robfig/cron/v3"
)

// part is one field of a cron line.
type part struct {
	name   string
	option cron.ParseOption
	mask   func(*cron.SpecSchedule) uint64
	size   uint64 // how many values the field has
	hint   string
}

// parts returns the six fields in the order in which they are written.
func parts() [6]part {
	return [6]part{
		{"second", cron.Second, func(c *cron.SpecSchedule) uint64 { return c.Second }, 60, "write 0-59"},
		{"minute", cron.Minute, func(c *cron.SpecSchedule) uint64 { return c.Minute }, 60, "write 0-59"},
		{"hour", cron.Hour, func(c *cron.SpecSchedule) uint64 { return c.Hour }, 24, "write 0-23"},
		{"day-of-month", cron.Dom, func(c *cron.SpecSchedule) uint64 { return c.Dom }, 31, "write 1-31"},
		{"month", cron.Month, func(c *cron.SpecSchedule) uint64 { return c.Month }, 12, "write 1-12 or JAN-DEC"},
		{"day-of-week", cron.Dow, func(c *cron.SpecSchedule) uint64 { return c.Dow }, 7, "write 0-6 or SUN-SAT (Sunday is 0)"},
	}
}

const starBit = 1 << 63 // robfig's mark for a star, which it drops for "*/2": never asked

// written keeps a cron line as its author wrote it, and how many values each field
// has. Its zero value stands for the forms that have no fields.
type written struct {
	text   [6]string
	values [6]int
}

const (
	second = iota
	minute
	hour
	dayOfMonth
	month
	dayOfWeek
)

// star reports whether field i is written as every value: "*", "?" or "*/1".
func (w written) star(i int) bool {
	t := strings.TrimSuffix(w.text[i], "/1")
	return t == "*" || t == "?"
}

// wildHour reports whether the hour is written "*" or "*/n" and not as fixed hours
// (numbers, lists, ranges).
func (w written) wildHour() bool {
	t, _, _ := strings.Cut(w.text[hour], "/")
	return t == "*" || t == "?"
}

// readCron reads five or six fields, or the name of a common schedule.
func readCron(spec Spec, expr string) (walls, written, error) {
	var w written
	texts, err := splitCron(spec, expr)
	if err != nil {
		return nil, w, err
	}
	var masks [6]uint64
	for i, p := range parts() {
		if masks[i], err = readPart(spec, p, texts[i]); err != nil {
			return nil, w, err
		}
		w.text[i], w.values[i] = texts[i], bits.OnesCount64(masks[i])
	}
	both := !w.star(dayOfMonth) && !w.star(dayOfWeek)
	if both && spec.DayMatch == "" {
		return nil, w, about(ErrDays, "schedule", spec.Expr, "say day_match: or | and")
	}
	return newFields(masks, both && spec.DayMatch == "or"), w, nil
}

// splitCron returns the six texts of expr, seconds first.
func splitCron(spec Spec, expr string) ([]string, error) {
	if strings.HasPrefix(expr, "@") {
		line := named(expr)
		if line == "" {
			return nil, badExpr(spec, "is not a known name", `write @hourly, @daily, @weekly, @monthly, @yearly, "@every 15m", "@at 2026-09-16T02:15" or @manual`)
		}
		return strings.Fields("0 " + line), nil
	}
	texts := strings.Fields(expr)
	has := fmt.Sprintf("has %d fields", len(texts))
	if len(texts) == 1 {
		has = "has 1 field"
	}
	switch {
	case spec.Seconds && len(texts) == 6:
		return texts, nil
	case spec.Seconds && len(texts) == 5:
		return nil, badExpr(spec, has+" but seconds: true wants 6", "put the seconds first, or remove seconds: true")
	case spec.Seconds:
		return nil, badExpr(spec, has, "write 6: second, minute, hour, day-of-month, month, day-of-week")
	case len(texts) == 5:
		return append([]string{"0"}, texts...), nil
	case len(texts) == 6:
		return nil, badExpr(spec, has, "write 5, or set seconds: true (then the first is seconds)")
	default:
		return nil, badExpr(spec, has, "write 5: minute, hour, day-of-month, month, day-of-week")
	}
}

// named returns the five fields of a common schedule, or "".
func named(expr string) string {
	switch expr {
	case "@hourly":
		return "0 * * * *"
	case "@daily", "@midnight":
		return "0 0 * * *"
	case "@weekly":
		return "0 0 * * 0"
	case "@monthly":
		return "0 0 1 * *"
	case "@yearly", "@annually":
		return "0 0 1 1 *"
	}
	return ""
}

// readPart returns the values of one field as bits. It refuses what robfig's parser
// takes without a word: empty list items, "*-5", and steps beyond the field.
func readPart(spec Spec, p part, text string) (uint64, error) {
	bad := func(why string) (uint64, error) {
		return 0, badExpr(spec, fmt.Sprintf("has the %s %q, %s", p.name, text, why), p.hint)
	}
	for item := range strings.SplitSeq(text, ",") {
		head, step, stepped := strings.Cut(item, "/")
		if item == "" {
			return bad("a list with an empty item")
		}
		if len(head) > 1 && strings.ContainsAny(head[:1], "*?") {
			return bad("where nothing may follow the star but a step")
		}
		if n, err := strconv.ParseUint(step, 10, 64); stepped && (err != nil || n == 0 || n > p.size) {
			return bad(fmt.Sprintf("whose step is not a number from 1 to %d", p.size))
		}
	}
	parsed, err := cron.NewParser(p.option).Parse(text)
	if err != nil {
		return bad("which is not a value, list, range or step of it")
	}
	line, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return bad("which is not a value, list, range or step of it")
	}
	return p.mask(line) &^ starBit, nil
}
