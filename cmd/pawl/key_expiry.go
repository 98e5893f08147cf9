package main

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"
)

// nowSQL is the database's clock, so many microseconds from now.
const nowSQL = `select clock_timestamp() + $1::bigint * interval '1 us'`

const (
	day         = 24 * time.Hour
	longestDays = 36500
)

// expiry is a flag that takes a time from now, in days too, or a date, or a moment.
type expiry struct {
	after  time.Duration
	moment time.Time
	given  string
}

func (v *expiry) String() string { return v.given }

// Set reads it; whether it lies in the future only the database's clock can say.
func (v *expiry) Set(s string) error {
	*v = expiry{given: s}
	if n, ok := strings.CutSuffix(s, "d"); ok {
		days, err := strconv.Atoi(n)
		if err == nil && days >= 1 && days <= longestDays {
			v.after = time.Duration(days) * day
			return nil
		}
	}
	if d, err := time.ParseDuration(s); err == nil && d >= time.Second && d <= longestDays*day {
		v.after = d
		return nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339Nano} {
		if t, err := time.Parse(layout, s); err == nil {
			v.moment = t.UTC()
			return nil
		}
	}
	return errors.New("use a time from now such as 90d or 12h, a date such as 2027-01-31, or a moment such as 2027-01-31T12:00:00Z")
}

func (v *expiry) Type() string { return "time" }

// at is the moment by the database's clock, or nil for never.
func (v *expiry) at(ctx context.Context, db *database) (*time.Time, error) {
	if v.given == "" {
		return nil, nil
	}
	var end time.Time
	if err := db.pool.QueryRow(ctx, nowSQL, v.after.Microseconds()).Scan(&end); err != nil {
		return nil, err
	}
	end = end.UTC()
	if v.moment.IsZero() {
		return &end, nil
	}
	if !v.moment.After(end) {
		return nil, usage("--expires is %q, which is past: use a time to come, such as 90d", v.given)
	}
	return &v.moment, nil
}
