package jobs

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestMetricsRegisteredTwiceAreTheSame(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	a, b := NewMetrics(reg), NewMetrics(reg)
	a.Periods.WithLabelValues("settle", "complete", "").Inc()
	b.Periods.WithLabelValues("settle", "complete", "").Inc()
	if got := testutil.ToFloat64(a.Periods.WithLabelValues("settle", "complete", "")); got != 2 {
		t.Errorf("counter = %v, want 2: the second NewMetrics must reuse the first's", got)
	}
	if a.Stuck != b.Stuck || a.Lateness != b.Lateness {
		t.Error("the second NewMetrics made metrics of its own")
	}
}

func TestMetricsWorkUnregistered(t *testing.T) {
	t.Parallel()
	m := NewMetrics(nil)
	m.Stuck.Set(1)
	m.Lateness.WithLabelValues("settle").Observe(2)
	if got := testutil.ToFloat64(m.Stuck); got != 1 {
		t.Errorf("stuck = %v, want 1", got)
	}
}

func TestCollectorReportsCounts(t *testing.T) {
	t.Parallel()
	c := newCollector(func(context.Context) (Counts, error) {
		return Counts{Held: 3, Stale: 1, Refusals: 7, QueueDepth: 2, QueueOldest: 1.5, WatermarkAge: 4}, nil
	})
	want := `
# HELP pawl_leases Leases by state: held, or stale (past its end and not taken yet).
# TYPE pawl_leases gauge
pawl_leases{state="held"} 3
pawl_leases{state="stale"} 1
# HELP pawl_planner_watermark_age_seconds How long the first unplanned tick has been due.
# TYPE pawl_planner_watermark_age_seconds gauge
pawl_planner_watermark_age_seconds 4
# HELP pawl_queue_depth Deliveries that are due and that no worker has taken.
# TYPE pawl_queue_depth gauge
pawl_queue_depth 2
# HELP pawl_queue_oldest_seconds How long the first delivery in the queue has been due.
# TYPE pawl_queue_oldest_seconds gauge
pawl_queue_oldest_seconds 1.5
# HELP pawl_refusals_total Writes that the fence turned away; what log mode let pass is not among them.
# TYPE pawl_refusals_total counter
pawl_refusals_total 7
`
	if err := testutil.CollectAndCompare(c, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

func TestCollectorIsAbsentWhenTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	reg.MustRegister(newCollector(func(context.Context) (Counts, error) { return Counts{}, errors.New("away") }))
	NewMetrics(reg).Stuck.Set(2)
	families, err := reg.Gather()
	if err != nil {
		t.Fatalf("the scrape failed: %v", err)
	}
	if len(families) != 1 || families[0].GetName() != "pawl_stuck_slots" {
		t.Errorf("families = %v, want pawl_stuck_slots alone", families)
	}
}

func TestCollectorAsksOnceASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		c := newCollector(func(context.Context) (Counts, error) { asked++; return Counts{}, nil })
		scrapes := func(n int) {
			for range n {
				testutil.CollectAndCount(c)
			}
		}
		scrapes(50)
		if asked != 1 {
			t.Fatalf("asked %d times within a second, want 1", asked)
		}
		<-time.After(collectorAge)
		scrapes(2)
		if asked != 2 {
			t.Errorf("asked %d times after a second, want 2", asked)
		}
	})
}
