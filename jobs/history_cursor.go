package jobs

import (
	"errors"
	"strings"
	"time"
)

// ErrCursor says that what a list should go on from isn't what one of its rows gave.
var ErrCursor = errors.New("jobs: not the cursor")

// cursor writes a place in a list that the latest begin: a time and what tells rows of one time apart. It is readable, and
// fit for a URL when it is escaped.
func cursor(at time.Time, rest ...string) string {
	return at.UTC().Format(time.RFC3339Nano) + "," + strings.Join(rest, ",")
}

// readCursor reads the time and n further parts, of which the last may hold commas. An empty one is no place: nil and empty
// parts.
func readCursor(text string, n int) (*time.Time, []string, error) {
	if text == "" {
		return nil, make([]string, n), nil
	}
	parts := strings.SplitN(text, ",", n+1)
	at, err := time.Parse(time.RFC3339Nano, parts[0])
	if err != nil || len(parts) != n+1 {
		return nil, make([]string, n), ErrCursor
	}
	return &at, parts[1:], nil
}

// unlessZero is the time, or nil for none.
func unlessZero(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func notNil(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}
