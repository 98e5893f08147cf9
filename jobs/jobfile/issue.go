package jobfile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Severity says how bad an issue is.
type Severity int

// The severities, from harmless on.
const (
	Note    Severity = iota // worth knowing
	Warning                 // probably not what was meant
	Error                   // the job can't run, or the file can't be read
)

// String returns "note", "warning" or "error".
func (s Severity) String() string {
	switch s {
	case Note:
		return "note"
	case Warning:
		return "warning"
	default:
		return "error"
	}
}

// Issue is one thing to say about a job file.
type Issue struct {
	File      string
	Line, Col int    // from 1; 0 when it has no place in the file
	Job       string // the job that it spoils, or ""
	Channel   string // the channel that it spoils, or ""
	Text      string // whole sentences that begin with the job and the field; no secret's value
	Severity  Severity
	Strict    bool // a warning that is an error when asked to be strict
}

// place returns "pawl.yaml:14:15".
func (i Issue) place() string {
	if i.Line == 0 {
		return i.File
	}
	return fmt.Sprintf("%s:%d:%d", i.File, i.Line, i.Col)
}

// String returns the issue in one line, without a line feed.
func (i Issue) String() string { return i.line(0) }

func (i Issue) line(width int) string {
	tail := ""
	switch {
	case i.Severity == Warning && i.Strict:
		tail = " (warning; error with --strict)"
	case i.Severity != Error:
		tail = " (" + i.Severity.String() + ")"
	}
	return fmt.Sprintf("%-*s  %s%s", width, i.place(), i.Text, tail)
}

// Lines returns the issues one a line, with their texts one below the other.
func Lines(issues []Issue) string {
	width := 0
	for _, i := range issues {
		width = max(width, len(i.place()))
	}
	var b strings.Builder
	for _, i := range issues {
		b.WriteString(i.line(width) + "\n")
	}
	return b.String()
}

// Failed reports whether there is an error among the issues; with strict also a warning
// that strictness makes one.
func Failed(issues []Issue, strict bool) bool {
	return slices.ContainsFunc(issues, func(i Issue) bool { return i.Severity == Error || strict && i.Strict })
}

// Worst returns the worst severity among the issues, -1 without one.
func Worst(issues []Issue) Severity {
	worst := Severity(-1)
	for _, i := range issues {
		worst = max(worst, i.Severity)
	}
	return worst
}

// Sort puts issues in the order of the file, and returns them.
func Sort(issues []Issue) []Issue {
	sortIssues(issues)
	return issues
}

func sortIssues(issues []Issue) {
	slices.SortStableFunc(issues, func(a, b Issue) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
}
