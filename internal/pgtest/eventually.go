package pgtest

import (
	"testing"
	"time"
)

// Eventually polls until fact is true, every 10 ms, and fails the test with
// the sentence what when it isn't within timeout. It must be called from the
// test's own goroutine.
func Eventually(t testing.TB, timeout time.Duration, what string, fact func() bool) {
	t.Helper()
	tick, late := time.NewTicker(10*time.Millisecond), time.NewTimer(timeout)
	defer tick.Stop()
	defer late.Stop()
	for !fact() {
		select {
		case <-tick.C:
		case <-late.C:
			t.Fatalf("still not true after %s: %s", timeout, what)
		}
	}
}
