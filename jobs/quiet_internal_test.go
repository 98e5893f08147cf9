package jobs

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestRiverIsHeardOnceInHalfAMinuteForEachMessage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		log := slog.New(newQuiet(slog.NewTextHandler(&b, nil))).With("queue", "pawl")
		for range 60 { // a minute
			log.InfoContext(t.Context(), "news")
			log.ErrorContext(t.Context(), "Error fetching jobs")
			log.WarnContext(t.Context(), "slow")
			<-time.After(time.Second)
		}
		for what, want := range map[string]int{"news": 0, "Error fetching jobs": 2, "slow": 2, "from=river": 4} {
			if n := strings.Count(b.String(), what); n != want {
				t.Errorf("%q is logged %d times, want %d", what, n, want)
			}
		}
	})
}
