package jobs

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// collectorAge is how long one answer of the database serves all scrapes.
const collectorAge = time.Second

// NewCollector is a collector of what stands in rows: pawl_leases{state}, pawl_refusals_total, pawl_queue_depth,
// pawl_queue_oldest_seconds and pawl_planner_watermark_age_seconds. Every process reports the same figures, so take
// the maximum over processes, not the sum. When the database doesn't answer within the time that [History] gives
// it, these metrics are absent and the scrape goes on.
func NewCollector(h *History) prometheus.Collector {
	return newCollector(h.Counts)
}

type collector struct {
	counts func(context.Context) (Counts, error)

	leases, refusals, depth, oldest, watermark *prometheus.Desc

	mu   sync.Mutex // held while the database is asked: scrapes that meet share one answer
	read time.Time
	last Counts
	err  error
}

func newCollector(counts func(context.Context) (Counts, error)) *collector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return &collector{
		counts:    counts,
		leases:    desc("pawl_leases", "Leases by state: held, or stale (past its end and not taken yet).", "state"),
		refusals:  desc("pawl_refusals_total", "Writes that the fence turned away; what log mode let pass is not among them."),
		depth:     desc("pawl_queue_depth", "Deliveries that are due and that no worker has taken."),
		oldest:    desc("pawl_queue_oldest_seconds", "How long the first delivery in the queue has been due."),
		watermark: desc("pawl_planner_watermark_age_seconds", "How long the first unplanned tick has been due."),
	}
}

// Describe implements [prometheus.Collector].
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.leases, c.refusals, c.depth, c.oldest, c.watermark} {
		ch <- d
	}
}

// Collect implements [prometheus.Collector].
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	n, err := c.fresh()
	if err != nil {
		return
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	gauge(c.leases, float64(n.Held), "held")
	gauge(c.leases, float64(n.Stale), "stale")
	gauge(c.depth, float64(n.QueueDepth))
	gauge(c.oldest, n.QueueOldest)
	gauge(c.watermark, n.WatermarkAge)
	ch <- prometheus.MustNewConstMetric(c.refusals, prometheus.CounterValue, float64(n.Refusals))
}

// fresh is the answer of the last second, or a new one. A failure is kept as long, so that scrapes don't queue on a
// database that is away.
func (c *collector) fresh() (Counts, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.read.IsZero() || time.Since(c.read) >= collectorAge {
		c.last, c.err = c.counts(context.Background())
		c.read = time.Now()
	}
	return c.last, c.err
}
