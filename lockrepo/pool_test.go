package lockrepo

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"pawl/internal/pgtest"
)

func TestLocksWorkThroughATransactionPooler(t *testing.T) {
	t.Parallel()
	direct := pgtest.URL(t)
	through, straight := pgtest.Pooler(t, direct), pgtest.Open(t, direct)
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeExec, pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe} {
		cfg, err := pgxpool.ParseConfig(through)
		if err != nil {
			t.Fatal(err)
		}
		cfg.ConnConfig.DefaultQueryExecMode = mode // the wrong one too: what pgx does by itself
		if found, err := IsPooled(t.Context(), cfg.ConnConfig); err != nil || !found {
			t.Fatalf("IsPooled = %v, %v", found, err)
		}
		pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		r := short(t, pool)
		for range 20 { // over several server connections
			l, err := r.Acquire(t.Context(), "x", time.Second)
			if err != nil {
				t.Fatal(mode, err)
			}
			if l, err = r.Renew(t.Context(), l); err != nil {
				t.Fatal(mode, err)
			}
			if err := r.Release(t.Context(), l); err != nil {
				t.Fatal(mode, err)
			}
		}
		err = r.Hold(t.Context(), "h", func(ctx context.Context, l Lease) error {
			untilBeaten(t, straight, "h", "2")
			return ctx.Err()
		})
		if err != nil {
			t.Errorf("%v: Hold: %v", mode, err)
		}
		force(t, r, mustAcquire(t, r, "f"))
		if ls, err := r.List(t.Context(), Filter{}); err != nil || len(ls) != 3 {
			t.Errorf("%v: List: %v, %v", mode, ls, err)
		}
		r.Close()
	}
	cfg, err := pgxpool.ParseConfig(direct)
	if err != nil {
		t.Fatal(err)
	}
	if found, err := IsPooled(t.Context(), cfg.ConnConfig); err != nil || found {
		t.Errorf("IsPooled directly = %v, %v", found, err)
	}
}

func TestOwnPoolHasItsSettingsOnlyWithoutAPooler(t *testing.T) {
	t.Parallel()
	direct := pgtest.URL(t)
	settings := map[string]string{"plan_cache_mode": "force_generic_plan"}
	for url, want := range map[string]string{direct: "pawl test force_generic_plan", pgtest.Pooler(t, direct): "auto"} {
		cfg, err := pgxpool.ParseConfig(url)
		if err != nil {
			t.Fatal(err)
		}
		var asked atomic.Int32 // the password may come from a file that is read again
		cfg.BeforeConnect = func(context.Context, *pgx.ConnConfig) error { asked.Add(1); return nil }
		pool, err := OwnPool(t.Context(), cfg, "pawl test", 2, settings)
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		got := run(t, pool, "select coalesce(nullif(current_setting('application_name'), ''), '-') || ' ' || current_setting('plan_cache_mode')")
		if got != want && want != "auto" || want == "auto" && got[len(got)-4:] != "auto" {
			t.Errorf("settings %q, want %q", got, want)
		}
		if pool.Config().MaxConns != 2 || asked.Load() < 2 || cfg.MaxConns == 2 {
			t.Errorf("conns %d, before connect %d times", pool.Config().MaxConns, asked.Load())
		}
	}
}

func TestAConnectionToADemotedServerIsClosed(t *testing.T) {
	t.Parallel()
	cfg, err := pgxpool.ParseConfig(pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	pool, err := OwnPool(t.Context(), cfg, "pawl test", 1, map[string]string{"default_transaction_read_only": "on"})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	pid := run(t, pool, "select pg_backend_pid()::text")
	if _, err := pool.Exec(t.Context(), "delete from pawl.audit"); err == nil {
		t.Fatal("wrote on a read-only server")
	}
	if again := run(t, pool, "select pg_backend_pid()::text"); again == pid {
		t.Error("the connection is used again")
	}
}

func TestTwoReposShareOneRegistry(t *testing.T) {
	t.Parallel()
	pool, reg := pgtest.New(t), prometheus.NewRegistry()
	for range 2 {
		r, err := New(Config{Pool: pool, Registerer: reg})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if err := r.Hold(t.Context(), "x", func(context.Context, Lease) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			counts[f.GetName()] += m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	for name, want := range map[string]float64{"pawl_lease_acquire_seconds": 2, "pawl_lease_wait_seconds": 2, "pawl_lease_ends_total": 2, "pawl_lease_held_seconds": 2} {
		if counts[name] != want {
			t.Errorf("%s = %v, want %v", name, counts[name], want)
		}
	}
	if counts["pawl_db_round_trip_seconds"] < 4 {
		t.Error("round trips are not measured")
	}
}
