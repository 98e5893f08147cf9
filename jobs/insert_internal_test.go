package jobs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// Ticks, triggers, reruns and backfills come into the table by one statement, which knows what a row needs and refuses a
// period that is there already. A message of an outbox comes by another one, since its transaction is the user's and may be
// long: it enters no lane, and its key is its own.
func TestThereIsOneWayIntoThePeriods(t *testing.T) {
	t.Parallel()
	n := 0
	for _, pattern := range []string{"*.go", "../migrations/sql/*.sql", "../web/*.go", "../cmd/*/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if strings.HasSuffix(f, "_test.go") {
				continue
			}
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			if c := strings.Count(string(text), "insert into pawl.periods"); c > 0 {
				n += c
				if !slices.Contains([]string{"owe.go", "../migrations/sql/00010_effects.sql", "../migrations/sql/00012_shards.sql"}, f) {
					t.Errorf("%s inserts periods past owe.go, pawl.enqueue and pawl.fan_out", f)
				}
			}
		}
	}
	if n != 3 {
		t.Errorf("%d statements insert periods, want 3", n)
	}
}

// Every way of owing a period twice is refused, or says what is.
func TestNoWayOwesACompletePeriodAgain(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	keys := r.chain(t, 1, Job{})
	r.goes(t, stateComplete)
	exec(t, pool, `update pawl.schedules set watermark = watermark - interval '2 d', next_at = now() returning 1`)
	if err := r.plan(t.Context()); err != nil {
		t.Fatal(err)
	}
	list, err := Backfill(t.Context(), pool, "j", keys[0], keys[0], BackfillConfig{Actor: "ann"})
	if err != nil || len(list) != 1 || list[0].Owe {
		t.Errorf("Backfill = %+v, %v", list, err)
	}
	if err := Retry(t.Context(), pool, "j", keys[0], "ann"); err == nil {
		t.Error("Retry owes it")
	}
	if keys[0] == time.Now().UTC().Format(time.DateOnly) {
		if _, err := Trigger(t.Context(), pool, "j", TriggerConfig{Actor: "ann"}); err == nil {
			t.Error("Trigger owes it")
		}
	}
	if n := exec(t, pool, `select count(*) from pawl.periods where key = $1 and state = 'complete' and revision = 1`, keys[0]); n != 1 {
		t.Error("the complete period has changed")
	}
	if n := exec(t, pool, `select count(*) from pawl.periods where key = $1`, keys[0]); n != 1 {
		t.Errorf("%d rows of the period", n)
	}
}
