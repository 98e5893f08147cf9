package ui

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"pawl/jobs"
)

func TestADefinitionIsShownAsPeopleWriteIt(t *testing.T) {
	t.Parallel()
	got := fieldsOf(json.RawMessage(`{"timeout": 3600000000000, "keep_runs": 7776000000000000, "catch_up_window": 86400000000000,
		"jitter": 90500000000, "late_after": 5400000000000, "runs": 6, "owner": "", "needs": ["a"], "alerts": null, "period": "day"}`))
	want := []field{{"catch_up_window", "24h"}, {"jitter", "1m30.5s"}, {"keep_runs", "90d"}, {"late_after", "1h30m"}, {"needs", `["a"]`}, {"period", "day"}, {"runs", "6"}, {"timeout", "1h"}}
	if !slices.Equal(got, want) {
		t.Errorf("shown as %v, want %v", got, want)
	}
}

func TestAnActIsASentence(t *testing.T) {
	t.Parallel()
	for action, want := range map[string]string{"release_request": "asked to release", "key_create": "made the key", "what_else": "what else"} {
		if got := done(action); got != want {
			t.Errorf("%s is told as %q, want %q", action, got, want)
		}
	}
	if got := eventText(jobs.RunEvent{Kind: "ended", Text: "Ended: lost: it was killed"}); got != "lost: it was killed" {
		t.Errorf("the end is told as %q", got)
	}
}

// A job of every hour has so many periods that their keys would hide which are not done.
func TestHoursStandByTheirDay(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 10, 24, 21, 0, 0, 0, time.UTC)
	days := make([]jobs.PeriodDay, 0, 3)
	for i, key := range []string{"2026-10-24T23+02:00", "2026-10-25T02+02:00", "2026-10-25T02+01:00"} {
		days = append(days, jobs.PeriodDay{Key: key, Start: at.Add(time.Duration(i) * time.Hour), State: "complete"})
	}
	c := calendar{ByHour: true, Days: Panel[jobs.PeriodDay]{Rows: days}}
	got := c.Months()
	if len(got) != 2 || got[0].Name != "Sat 24 Oct 2026" || got[1].Name != "Sun 25 Oct 2026" {
		t.Fatalf("the days are %+v", got)
	}
	if a, b, c := got[0].Cells[0].Text, got[1].Cells[0].Text, got[1].Cells[1].Text; a != "23" || b != "02" || c != "02" {
		t.Errorf("the hours are %s, %s, %s", a, b, c)
	}
}

// What came late and is complete is done: it is not among those that somebody has to look at.
func TestWhatIsCompleteIsNotUndone(t *testing.T) {
	t.Parallel()
	c := calendar{Days: Panel[jobs.PeriodDay]{Rows: []jobs.PeriodDay{
		{Key: "a", State: "late", Complete: true}, {Key: "b", State: "late"}, {Key: "c", State: "missed"}, {Key: "d", State: "complete", Complete: true},
	}}}
	if n := c.Undone(); n != 2 {
		t.Errorf("%d are undone, want the late one and the missed one", n)
	}
	if got := (cell{PeriodDay: c.Days.Rows[0]}).Says(); got != "complete, but late" {
		t.Errorf("it is told as %q", got)
	}
}
