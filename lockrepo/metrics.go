package lockrepo

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics counts what leases do. No label holds a lock's name.
type metrics struct {
	acquire    *prometheus.HistogramVec
	wait       prometheus.Histogram
	renewDelay prometheus.Histogram
	held       prometheus.Histogram
	remaining  prometheus.Histogram
	ends       *prometheus.CounterVec
	trip       prometheus.Histogram
}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	var errs []error
	m := &metrics{
		acquire: add(reg, &errs, prometheus.NewHistogramVec(histogram("pawl_lease_acquire_seconds",
			"Time that one acquire statement took, by outcome.", prometheus.ExponentialBuckets(0.0005, 2, 14)), []string{"outcome"})),
		wait: add(reg, &errs, prometheus.NewHistogram(histogram("pawl_lease_wait_seconds",
			"Time from a request for a lease to its grant.", prometheus.ExponentialBuckets(0.001, 2, 18)))),
		renewDelay: add(reg, &errs, prometheus.NewHistogram(histogram("pawl_lease_renew_delay_seconds",
			"How long after it was due a renewal was answered.", prometheus.ExponentialBuckets(0.001, 2, 16)))),
		held: add(reg, &errs, prometheus.NewHistogram(histogram("pawl_lease_held_seconds",
			"How long a lease was held.", prometheus.ExponentialBuckets(0.001, 4, 14)))),
		remaining: add(reg, &errs, prometheus.NewHistogram(histogram("pawl_lease_remaining_at_renew_ratio",
			"Part of the TTL that was left when a renewal was answered.", prometheus.LinearBuckets(0, 0.1, 10)))),
		ends: add(reg, &errs, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pawl_lease_ends_total", Help: "Leases of this process that ended, by how.",
		}, []string{"how"})),
		trip: add(reg, &errs, prometheus.NewHistogram(histogram("pawl_db_round_trip_seconds",
			"Time of one call of the lock protocol to the database.", prometheus.ExponentialBuckets(0.0005, 2, 14)))),
	}
	return m, errors.Join(errs...)
}

func histogram(name, help string, buckets []float64) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}
}

// add registers c, or finds the one that another Repo of this process has
// registered.
func add[C prometheus.Collector](reg prometheus.Registerer, errs *[]error, c C) C {
	if reg == nil {
		return c
	}
	err := reg.Register(c)
	var there prometheus.AlreadyRegisteredError
	if errors.As(err, &there) {
		if old, ok := there.ExistingCollector.(C); ok {
			return old
		}
	}
	if err != nil {
		*errs = append(*errs, fmt.Errorf("lockrepo: register metrics: %w", err))
	}
	return c
}

func (m *metrics) roundTrip(start time.Time) { m.trip.Observe(time.Since(start).Seconds()) }

func (m *metrics) acquired(outcome string, err error, sent Instant) {
	if err != nil {
		outcome = "error"
	}
	m.acquire.WithLabelValues(outcome).Observe(time.Since(sent.at).Seconds())
}

func (m *metrics) ended(how string, held time.Duration) {
	m.ends.WithLabelValues(how).Inc()
	m.held.Observe(held.Seconds())
}

// lost counts a lease that the keeper saw end.
func (m *metrics) lost(cause error, held time.Duration) {
	how := "lost"
	switch {
	case errors.Is(cause, ErrTakenOver):
		how = "taken_over"
	case errors.Is(cause, ErrForced):
		how = "forced"
	case errors.Is(cause, ErrExpired):
		how = "expired"
	}
	m.ended(how, held)
}
