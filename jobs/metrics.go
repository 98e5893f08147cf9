package jobs

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics counts what this process did. What stands in rows (leases, refusals, the queue) is read by [NewCollector]
// instead, so that it is right whichever process is asked. No label holds a lock's name, a key or a period.
type Metrics struct {
	Periods  *prometheus.CounterVec   // pawl_periods_total{job,state,reason}: periods that this process brought to a state
	Lateness *prometheus.HistogramVec // pawl_period_lateness_seconds{job}: from scheduled to the first run's start
	Stuck    prometheus.Gauge         // pawl_stuck_slots: slots whose function ignores the end of its context
}

// NewMetrics makes the metrics and registers them. A nil registerer leaves them usable and unregistered; a second
// call on one registerer gives the first call's metrics. It panics where prometheus does: when another collector
// has one of the names.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	return &Metrics{
		Periods: register(reg, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pawl_periods_total",
			Help: "Periods that this process brought to a state, by job, state and reason.",
		}, []string{"job", "state", "reason"})),
		Lateness: register(reg, prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "pawl_period_lateness_seconds",
			Help:    "From the time a period was scheduled to the start of its first run.",
			Buckets: []float64{.1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 14400, 86400},
		}, []string{"job"})),
		Stuck: register(reg, prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "pawl_stuck_slots",
			Help: "Slots whose function has not returned though its context ended longer ago than the grace.",
		})),
	}
}

// register gives back the collector that is registered already, if there is one of this kind.
func register[C prometheus.Collector](reg prometheus.Registerer, c C) C {
	if reg == nil {
		return c
	}
	err := reg.Register(c)
	if twice := (prometheus.AlreadyRegisteredError{}); errors.As(err, &twice) {
		if first, ok := twice.ExistingCollector.(C); ok {
			return first
		}
	}
	if err != nil {
		panic(err)
	}
	return c
}
