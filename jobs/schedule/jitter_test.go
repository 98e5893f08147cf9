package schedule_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pawl/jobs/schedule"
)

// TestJitterIsTheSameInEveryRelease holds the hash to values that another
// program computed: a release that
// changed them would move starts while old and new replicas run side by side.
func TestJitterIsTheSameInEveryRelease(t *testing.T) {
	t.Parallel()
	s := parse(t, schedule.Spec{Expr: "15 2 * * *", Jitter: time.Hour})
	for _, c := range []struct {
		job, key string
		want     time.Duration
	}{
		{"settle", "2026-09-16", 14*time.Minute + 3427*time.Millisecond},
		{"settle", "2026-09-17", 44*time.Minute + 29592*time.Millisecond},
		{"report", "2026-09-16", 41*time.Minute + 14085*time.Millisecond},
	} {
		if got := s.JitterOf(c.job, c.key); got != c.want {
			t.Errorf("%s %s: %s, want %s", c.job, c.key, got, c.want)
		}
	}
}

func TestJitterIsSpreadOverItsRange(t *testing.T) {
	t.Parallel()
	const jitter = 10 * time.Minute
	s := parse(t, schedule.Spec{Expr: "*/15 * * * *", Jitter: jitter})
	var tenths [10]int
	const n = 5000
	for i := range n {
		d := s.JitterOf(fmt.Sprintf("job_%d", i%7), fmt.Sprintf("2026-09-16T%05d", i))
		if d < 0 || d >= jitter || d%time.Millisecond != 0 {
			t.Fatalf("jitter %s of %s", d, jitter)
		}
		tenths[d*10/jitter]++
	}
	for i, got := range tenths {
		if got < n/10*8/10 || got > n/10*12/10 {
			t.Errorf("%d of %d are in tenth %d", got, n, i)
		}
	}
	// The names are not just joined.
	if s.JitterOf("ab", "c") == s.JitterOf("a", "bc") {
		t.Error("ab+c and a+bc have the same jitter")
	}
}

func TestJitterMovesNeitherTickNorPeriod(t *testing.T) {
	t.Parallel()
	plain, spread := parse(t, schedule.Spec{Expr: "15 2 * * *"}), parse(t, schedule.Spec{Expr: "15 2 * * *", Jitter: time.Hour})
	at := utc(t, "2026-09-16T00:00Z")
	if a, b := plain.Next(at), spread.Next(at); a != b || plain.Period(a) != spread.Period(b) {
		t.Errorf("%s owes %+v, with jitter %s %+v", a, plain.Period(a), b, spread.Period(b))
	}
	if d := plain.JitterOf("settle", "2026-09-16"); d != 0 {
		t.Errorf("without jitter: %s", d)
	}
	_, err := schedule.Parse(schedule.Spec{Expr: "@daily", Jitter: -time.Second})
	if want := `jitter: "-1s" is negative; write a duration like 30s or 10m`; err == nil || err.Error() != want {
		t.Errorf("Parse = %v, want %s", err, want)
	}
	_, err = spread.Policy(schedule.Policy{StartWithin: time.Hour})
	if want := `start_within: "1h0m0s" is not more than the jitter of 1h0m0s`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Policy = %v, want %s", err, want)
	}
	if _, err = spread.Policy(schedule.Policy{StartWithin: time.Hour + time.Second}); err != nil {
		t.Errorf("Policy = %v", err)
	}
}
