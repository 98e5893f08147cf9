package main

import (
	"context"
	"fmt"
	"math"
	"time"
)

const leasesSQL = `
select count(*), coalesce(percentile_cont(array[0.5, 0.99, 1.0]) within group (order by extract(epoch from ended_at - acquired_at)::float8), '{0,0,0}'),
       count(*) filter (where how in ('expired', 'taken_over'))
  from (select * from pawl.tenures where ended_at > clock_timestamp() - interval '7 days' and acquired_at is not null
         order by ended_at desc limit 100000) t`

func checkLeases(ctx context.Context, db *database) (finding, error) {
	var n, lost int64
	var p []float64
	if err := db.pool.QueryRow(ctx, leasesSQL).Scan(&n, &p, &lost); err != nil {
		return finding{}, err
	}
	if n == 0 {
		return okay("none has ended in the last 7 days")
	}
	detail := fmt.Sprintf("%s in 7 days, held for %s (median), %s (99 %%), %s (longest); %s ran out",
		plural(n, "lease", "leases"), seconds(p[0]), seconds(p[1]), seconds(p[2]), thousands(lost))
	return unless(lost*20 > n && n >= 20, warn, detail, "more than one in twenty ran out without a release: see docs/runbook.md, PawlLeasesLost")
}

// A beat is due after a third of the TTL, and the holder gives up a tenth before the end. What a gap is longer than
// the third is lateness; the TTL is the lock's present one.
const renewalsSQL = `
with g as (
  select extract(epoch from t.longest_gap)::float8 as gap, extract(epoch from l.ttl)::float8 as ttl
    from (select lock, longest_gap, beats from pawl.tenures where ended_at > clock_timestamp() - interval '7 days'
           order by ended_at desc limit 100000) t
    join pawl.locks l on l.name = t.lock where t.beats > 0 and l.ttl > interval '0'
  union all
  select extract(epoch from longest_gap)::float8, extract(epoch from ttl)::float8 from pawl.locks where grant_id is not null and beats > 0
)
select count(*), coalesce(percentile_cont(array[0.5, 0.99, 1.0]) within group (order by gap), '{0,0,0}'),
       coalesce(percentile_cont(0.99) within group (order by greatest(gap - ttl / 3, 0)), 0), coalesce(min(ttl), 0)
  from g`

func checkRenewals(ctx context.Context, db *database) (finding, error) {
	var n int64
	var gaps []float64
	var late, ttl float64
	if err := db.pool.QueryRow(ctx, renewalsSQL).Scan(&n, &gaps, &late, &ttl); err != nil {
		return finding{}, err
	}
	if n == 0 {
		return okay("no lease was renewed in the last 7 days: nothing to suggest, the default TTL is 30s")
	}
	suggested := suggestTTL(late)
	detail := fmt.Sprintf("longest gaps of %s: %s (median), %s (99 %%), %s (worst), %s late (99 %%); they suggest a TTL of at least %s, the shortest in use is %s",
		plural(n, "lease", "leases"), seconds(gaps[0]), seconds(gaps[1]), seconds(gaps[2]), seconds(late), suggested, seconds(ttl))
	return unless(suggested.Seconds() > ttl, warn, detail, fmt.Sprintf("set the TTL to %s or more, or find out why beats are late: CPU limits, a slow database", suggested))
}

// suggestTTL leaves twice the lateness between a beat that is due (a third of the TTL) and the holder's own deadline
// (nine tenths), in whole seconds.
func suggestTTL(late float64) time.Duration {
	const room = 0.9 - 1.0/3
	return time.Duration(max(1, math.Ceil(2*late/room))) * time.Second
}

// seconds is a length of time that the database gave as a number.
func seconds(s float64) string { return humanise(time.Duration(s * float64(time.Second))) }
