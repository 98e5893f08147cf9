package kinds

import (
	"strconv"
	"strings"
	"time"

	"pawl/jobs"
)

// Text is a value with templates in it, which may hold secrets. Expand returns it with value's answer for the name of
// each template: period.key, period.start, period.end, period.offset, scheduled_at, run.id, run.attempt, run.revision,
// in a shard shard.key, shard.index (from 0) and shard.count, or params.NAME, of jobs.Job.Params. Times are RFC 3339, in the
// job's time zone. Show does the same and leaves secrets as they were written: it is what is recorded, and what people see.
type Text interface {
	Expand(value func(name string) string) string
	Show(value func(name string) string) string
}

// Plain is a Text without templates.
type Plain string

// Expand returns the text as it is.
func (p Plain) Expand(func(string) string) string { return string(p) }

// Show returns the text as it is.
func (p Plain) Show(func(string) string) string { return string(p) }

// values answers what templates ask about a run.
func values(run *jobs.Run) func(name string) string {
	at := func(t time.Time) string { return t.In(run.Location()).Format(time.RFC3339Nano) }
	return func(name string) string {
		switch name {
		case "period.key":
			return run.Period.Key
		case "period.start":
			return at(run.Period.Start)
		case "period.end":
			return at(run.Period.End)
		case "period.offset":
			return strconv.Itoa(run.Period.Offset)
		case "scheduled_at":
			return at(run.ScheduledAt)
		case "run.id":
			return run.ID.String()
		case "run.attempt":
			return strconv.Itoa(run.Attempt)
		case "run.revision":
			return strconv.Itoa(run.Revision)
		case "shard.key":
			return run.Shard.Key
		case "shard.index":
			return strconv.Itoa(run.Shard.Index)
		case "shard.count":
			return strconv.Itoa(run.Shard.Count)
		}
		param, _ := strings.CutPrefix(name, "params.")
		return run.Params.Text(param)
	}
}

// expand returns v with every Text in it expanded. Lists and maps are copied.
func expand(v any, value func(string) string) any {
	return replace(v, func(t Text) string { return t.Expand(value) })
}

func replace(v any, by func(Text) string) any {
	switch v := v.(type) {
	case Text:
		return by(v)
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = replace(item, by)
		}
		return list
	case map[string]any:
		m := make(map[string]any, len(v))
		for key, item := range v {
			m[key] = replace(item, by)
		}
		return m
	}
	return v
}

// literal is what stands in a text where no template does.
func literal(t Text) string { return t.Expand(func(string) string { return "" }) }
