package lockrepo

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"pawl/fence"
	"pawl/internal/pgtest"
)

// BenchmarkAcquireRelease compares acquire and release to two plain updates of
// one row in the same run. The ratio is the figure; the machine is not.
func BenchmarkAcquireRelease(b *testing.B) {
	pool := pgtest.New(b)
	r := newRepo(b, pool, "a")
	run(b, pool, "create table plain (id int primary key, v int) with (fillfactor = 50)")
	run(b, pool, "insert into plain values (1, 0)")
	var pawl, plain time.Duration
	for b.Loop() {
		start := time.Now()
		l, err := r.Acquire(b.Context(), "x", time.Minute)
		if err != nil {
			b.Fatal(err)
		}
		if err := r.Release(b.Context(), l); err != nil {
			b.Fatal(err)
		}
		mid := time.Now()
		for range 2 {
			if _, err := pool.Exec(b.Context(), "update plain set v = v + 1 where id = $1", 1); err != nil {
				b.Fatal(err)
			}
		}
		pawl, plain = pawl+mid.Sub(start), plain+time.Since(mid)
	}
	b.ReportMetric(pawl.Seconds()*1e6/float64(b.N), "µs/acquire+release")
	b.ReportMetric(plain.Seconds()*1e6/float64(b.N), "µs/two-updates")
	b.ReportMetric(pawl.Seconds()/plain.Seconds(), "times")
}

// BenchmarkRenew10000 renews ten thousand leases as one beat does.
func BenchmarkRenew10000(b *testing.B) {
	pool := pgtest.New(b)
	r := newRepo(b, pool, "a")
	if _, err := pool.Exec(b.Context(), `insert into pawl.locks (name, token, incarnation, grant_id, holder, ttl, acquired_at, renewed_at, expires_at)
		select 'l' || i, i, 1, gen_random_uuid(), 'a', '1 h', now(), now(), now() + interval '1 h' from generate_series(1, 10000) i`); err != nil {
		b.Fatal(err)
	}
	rows, err := pool.Query(b.Context(), "select name, token, grant_id::text from pawl.locks")
	if err != nil {
		b.Fatal(err)
	}
	var ls []Lease
	for rows.Next() {
		l := Lease{TTL: time.Hour}
		var grant string
		if err := rows.Scan(&l.Token.Lock, &l.Token.Seq, &grant); err != nil {
			b.Fatal(err)
		}
		l.Grant = uuid.MustParse(grant)
		ls = append(ls, l)
	}
	n := &line{cfg: pool.Config(), m: r.m}
	defer n.close()
	for b.Loop() {
		for i := 0; i < len(ls); i += maxBeat {
			out, _, err := n.batch(b.Context(), ls[i:i+maxBeat])
			if err != nil || out[0].expires.IsZero() {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(len(ls))*float64(b.N)/b.Elapsed().Seconds(), "leases/s")
}

// BenchmarkRenewOneByOne is what a batch saves.
func BenchmarkRenewOneByOne(b *testing.B) {
	r := newRepo(b, pgtest.New(b), "a")
	l := Lease{Token: fence.Token{Lock: "x"}}
	l, err := r.Acquire(context.WithoutCancel(b.Context()), l.Token.Lock, time.Hour)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if l, err = r.Renew(b.Context(), l); err != nil {
			b.Fatal(err)
		}
	}
}
