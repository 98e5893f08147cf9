package web

import (
	"fmt"
	"strings"
	"time"

	"pawl/jobs"
)

// runRow is one line of the last runs.
type runRow struct {
	jobs.RunRecord
	State    string // in words
	Class    string // how it looks: fine, run, warn, bad
	Running  bool
	Took     time.Duration
	Brief    string  // the error's first line
	Whole    string  // all of the error, where that is more
	Progress string  // empty: the run doesn't tell
	Percent  float64 // 0: not known
}

func viewRun(r jobs.RunRecord) runRow {
	row := runRow{RunRecord: r, State: strings.ReplaceAll(r.State, "_", " "), Class: runClass(r.State), Running: r.EndedAt == nil}
	if row.Brief = brief(r.Error); row.Brief != r.Error {
		row.Whole = r.Error
	}
	if r.EndedAt != nil {
		row.Took = r.EndedAt.Sub(r.StartedAt)
	}
	switch {
	case r.Done == nil:
	case r.Total == nil || *r.Total <= 0:
		row.Progress = comma(*r.Done)
	default:
		row.Progress = fmt.Sprintf("%s of %s", comma(*r.Done), comma(*r.Total))
		row.Percent = percent(float64(*r.Done), float64(*r.Total))
	}
	return row
}

// brief is the first line that says something, or its beginning: a panic's stack comes after it.
func brief(s string) string {
	const most = 200
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	s = strings.TrimSpace(s)
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

// runClass marks what somebody should look at.
func runClass(state string) string {
	switch state {
	case "running":
		return "run"
	case "failed", "timed_out":
		return "bad"
	case "lost":
		return "warn"
	default:
		return "fine"
	}
}

// percent is a share for drawing, with one digit.
func percent(part, whole float64) float64 {
	if whole <= 0 {
		return 0
	}
	p := min(100, max(0, 100*part/whole))
	return float64(int(p*10)) / 10
}
