package jobs

import (
	"context"
	"testing"
	"time"
)

// Doubled thirty times, half a minute is more than a duration can say.
func TestARetryWaitsBetweenASecondAndTheMostAtEveryAttempt(t *testing.T) {
	t.Parallel()
	for _, delay := range []time.Duration{1, 30 * time.Second, time.Hour, 1<<63 - 1} {
		j, err := Job{Name: "j", Schedule: "@manual", RetryDelay: delay, Func: func(context.Context, *Run) error { return nil }}.withDefaults()
		if err != nil {
			t.Fatal(err)
		}
		for attempt := 1; attempt <= 1001; attempt++ {
			run := &Run{job: j, Attempt: attempt}
			if d := run.retryAfter(stateFailed, nil); d < time.Second || d > max(j.RetryMaxDelay, time.Second) {
				t.Fatalf("RetryDelay %s: attempt %d waits %s", delay, attempt, d)
			}
		}
	}
}
