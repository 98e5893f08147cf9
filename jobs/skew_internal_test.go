package jobs

import (
	"testing"
	"time"
)

func TestClocksThatDifferAreSaidOncePerChange(t *testing.T) {
	t.Parallel()
	r, _ := opened(t)
	log := &said{}
	r.log = log.logger()
	at := func(off time.Duration, passes int) {
		t.Helper()
		r.clock = func() time.Time { return time.Now().Add(off) }
		for range passes {
			if err := r.plan(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	says := func(differ, agree int) {
		t.Helper()
		if d, a := log.count("clock and ours differ"), log.count("clock and ours agree"); d != differ || a != agree {
			t.Errorf("it was said %d times that the clocks differ and %d times that they agree, want %d and %d", d, a, differ, agree)
		}
	}
	at(0, 3)
	says(0, 0)
	at(-3*time.Second, 3)
	says(1, 0)
	at(-700*time.Millisecond, 3) // not right yet
	says(1, 0)
	at(0, 3)
	says(1, 1)
	at(4*time.Minute, 3)
	says(2, 1)
	if log.count("database_ahead=-4m") != 1 {
		t.Error("it wasn't said by how much")
	}
}

// What a slow answer leaves open is no difference.
func TestASlowAnswerIsNoWrongClock(t *testing.T) {
	t.Parallel()
	sent := time.Now()
	for _, c := range []struct{ theirs, trip, want time.Duration }{
		{0, 3 * time.Second, 0},
		{3 * time.Second, 3 * time.Second, 0},
		{4 * time.Second, 3 * time.Second, time.Second},
		{-time.Second, 3 * time.Second, -time.Second},
		{2 * time.Second, 0, 2 * time.Second},
	} {
		if got := apart(sent, sent.Add(c.theirs), c.trip); got != c.want {
			t.Errorf("answered %s after %s: %s apart, want %s", c.theirs, c.trip, got, c.want)
		}
	}
}
