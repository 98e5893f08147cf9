package settlement

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"pawl/fence"
	"pawl/internal/pgtest"
)

var errStop = errors.New("stopped by the test")

// stopAt is a hook that fails at one batch.
func stopAt(batch int) func(context.Context, int) error {
	return func(_ context.Context, b int) error {
		if b == batch {
			return errStop
		}
		return nil
	}
}

func TestEveryPaymentIsSettledOnce(t *testing.T) {
	t.Parallel()
	s, pool := generated(t, Config{}, Input{Payments: 10_000, Days: 3})
	r := newToken(7)
	settleAll(t, s, pool, r)
	got := totals(t, s, pool)
	if !got.OK() || got.Payments != 10_000 || r.completed != 3 || got.Fees <= 0 || len(got.Currencies) != 6 {
		t.Errorf("totals %+v after %d days", got, r.completed)
	}
	if marks := one[int](t, pool, s.sql(`select count(*)::int from $schema.settlement where last_token <> 7`)); marks != 0 {
		t.Errorf("%d rows carry another token than the one that wrote them", marks)
	}
	if !slices.IsSorted(r.done[:10]) || r.done[9] != 200 {
		t.Errorf("progress of the first day: %v", r.done[:10])
	}
}

func TestARowsFiguresAreItsPayments(t *testing.T) {
	t.Parallel()
	pool, s := pgtest.New(t), New(Config{})
	if err := s.Create(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	exec(t, pool, s.sql(`
insert into $schema.merchant values ('acme', 50), ('zen', 290);
insert into $schema.payments values
 (1, 'acme', '2026-09-16 00:00:00Z', 'EUR', 'sale', 300),       -- fee 1.5: 2
 (2, 'acme', '2026-09-16 23:59:59.999999Z', 'EUR', 'sale', 500), -- fee 2.5: 2
 (3, 'acme', '2026-09-16 12:00Z', 'EUR', 'refund', 100),
 (4, 'acme', '2026-09-16 12:00Z', 'EUR', 'chargeback', 50),
 (5, 'acme', '2026-09-16 12:00Z', 'JPY', 'sale', 700),           -- fee 3.5: 4
 (6, 'acme', '2026-09-17 00:00:00Z', 'EUR', 'sale', 1000000),
 (7, 'acme', '2026-09-15 23:59:59Z', 'EUR', 'sale', 1000000),
 (8, 'zen', '2026-09-16 12:00Z', 'EUR', 'refund', 1234)`))
	r := newToken(1)
	r.pool = pool
	if err := s.settle(t.Context(), r, aDay(last.Truncate(24*time.Hour))); err != nil {
		t.Fatal(err)
	}
	got := one[string](t, pool, s.sql(`select string_agg(concat_ws(' ', merchant, day, currency, gross, refunds, chargebacks, fees, net, payments), '; '
 order by merchant, day, currency) from $schema.settlement`))
	want := "acme 2026-09-16 EUR 800 100 50 4 646 4; acme 2026-09-16 JPY 700 0 0 4 696 1; zen 2026-09-16 EUR 0 1234 0 0 -1234 1"
	if got != want {
		t.Errorf("rows are\n%s, want\n%s", got, want)
	}
}

func TestAnotherRunGoesOnFromTheCheckpoint(t *testing.T) {
	t.Parallel()
	for where, cfg := range map[string]Config{
		"between batches": {Pause: stopAt(4)}, "inside a batch": {Inside: stopAt(4)},
	} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			s, pool := generated(t, cfg, Input{Payments: 5000, Days: 1})
			d := days(t, s, pool)[0]
			first := newToken(10)
			first.pool = pool
			if err := s.settle(t.Context(), first, d); !errors.Is(err, errStop) {
				t.Fatalf("the first run: %v", err)
			}
			var batches []int
			s.cfg.Inside, s.cfg.Pause = nil, func(_ context.Context, b int) error { batches = append(batches, b); return nil }
			if err := s.settle(t.Context(), first.successor(11), d); err != nil {
				t.Fatal(err)
			}
			if want := []int{4, 5, 6, 7, 8, 9, 10, 11}; !slices.Equal(batches, want) {
				t.Errorf("the second run did batches %v, want %v", batches, want)
			}
			old := one[int](t, pool, s.sql(`select count(distinct merchant)::int from $schema.settlement where last_token = 10`))
			if old != 60 {
				t.Errorf("%d merchants are the first run's, want the 60 of its three batches", old)
			}
			if got := totals(t, s, pool); !got.OK() {
				t.Errorf("totals %+v", got)
			}
		})
	}
}

func TestANewerTokenOverwritesAnOlderOnesRows(t *testing.T) {
	t.Parallel()
	s, pool := generated(t, Config{}, Input{Payments: 2000, Days: 1})
	settleAll(t, s, pool, newToken(10))
	settleAll(t, s, pool, newToken(11)) // no checkpoint: from the beginning
	if got := one[int](t, pool, s.sql(`select count(*)::int from $schema.settlement where last_token <> 11`)); got != 0 {
		t.Errorf("%d rows still carry the older token", got)
	}
	if got := totals(t, s, pool); !got.OK() {
		t.Errorf("totals %+v", got)
	}
}

func TestAnOldHolderWithoutAGuardIsRefusedByTheMark(t *testing.T) {
	t.Parallel()
	s, pool := generated(t, Config{}, Input{Payments: 2000, Days: 1})
	settleAll(t, s, pool, newToken(11))
	before := one[string](t, pool, s.sql(`select md5(string_agg(s::text, '' order by merchant, currency)) from $schema.settlement s`))
	old := newToken(10)
	old.pool = pool
	err := s.settle(t.Context(), old, days(t, s, pool)[0])
	var stale *fence.StaleError
	if !errors.Is(err, fence.ErrStale) || !errors.As(err, &stale) {
		t.Fatalf("the old holder's write: %v, want ErrStale", err)
	}
	if stale.Current != 11 || stale.Token.Seq != 10 || stale.Target != "pawl_demo.settlement/2026-09-16" {
		t.Errorf("the refusal says %+v", stale)
	}
	after := one[string](t, pool, s.sql(`select md5(string_agg(s::text, '' order by merchant, currency)) from $schema.settlement s`))
	if after != before || old.completed != 0 {
		t.Errorf("rows changed: %t, completed: %d", after != before, old.completed)
	}
}

// A mixed batch: one row of the batch is a newer token's, and none of the batch may stay.
func TestOneRefusedRowRollsItsBatchBack(t *testing.T) {
	t.Parallel()
	s, pool := generated(t, Config{}, Input{Payments: 2000, Days: 1})
	settleAll(t, s, pool, newToken(5))
	exec(t, pool, s.sql(`update $schema.settlement set last_token = 20 where (merchant, currency) =
 (select merchant, currency from $schema.settlement order by merchant offset 3 limit 1)`))
	r := newToken(10)
	r.pool = pool
	if err := s.settle(t.Context(), r, days(t, s, pool)[0]); !errors.Is(err, fence.ErrStale) {
		t.Fatalf("a batch with a newer row: %v, want ErrStale", err)
	}
	if got := one[int](t, pool, s.sql(`select count(*)::int from $schema.settlement where last_token = 10`)); got != 0 || r.saved != nil {
		t.Errorf("%d rows of the refused batch stayed; checkpoint %s", got, r.saved)
	}
}

func TestATokenWritesARowOnce(t *testing.T) {
	t.Parallel()
	s, pool := generated(t, Config{}, Input{Payments: 2000, Days: 1})
	r := newToken(10)
	settleAll(t, s, pool, r)
	r.saved = nil // forgets its checkpoint and begins again
	err := s.settle(t.Context(), r, days(t, s, pool)[0])
	if err == nil || errors.Is(err, fence.ErrStale) || !strings.Contains(err.Error(), "once per token") {
		t.Errorf("the same batch again: %v", err)
	}
}

func TestAPaymentThatComesAfterItsBatchStopsTheDay(t *testing.T) {
	t.Parallel()
	s, pool := generated(t, Config{}, Input{Payments: 2000, Days: 1})
	s.cfg.Pause = func(ctx context.Context, batch int) error {
		if batch != 5 {
			return nil
		}
		_, err := pool.Exec(ctx, s.sql(`insert into $schema.payments values (-1, 'm0001', '2026-09-16 12:00Z', 'EUR', 'sale', 4321)`))
		return err
	}
	r := newToken(10)
	r.pool = pool
	err := s.settle(t.Context(), r, days(t, s, pool)[0])
	var c *ControlError
	if !errors.As(err, &c) {
		t.Fatalf("settled with a late payment: %v, want a ControlError", err)
	}
	if c.Currency != "EUR" || c.In-c.Out-c.Fees != 4321 || c.Counted != c.Settled+1 || r.completed != 0 {
		t.Errorf("the error says %+v; completed %d", c, r.completed)
	}
	if !strings.Contains(err.Error(), "4321 unaccounted for") {
		t.Errorf("the message doesn't name the figure: %v", err)
	}
	if got := totals(t, s, pool); got.Missing != 1 || got.Difference == 0 || got.OK() {
		t.Errorf("totals don't see it: %+v", got.Total)
	}
}

func TestAPaymentOfAnUnknownMerchantStopsTheDay(t *testing.T) {
	t.Parallel()
	s, pool := generated(t, Config{}, Input{Payments: 200, Days: 1})
	exec(t, pool, s.sql(`insert into $schema.payments values (-1, 'nobody', '2026-09-16 12:00Z', 'EUR', 'refund', 0)`))
	r := newToken(10)
	r.pool = pool
	err := s.settle(t.Context(), r, days(t, s, pool)[0])
	// Its amount is nought: only the count tells.
	if c := (*ControlError)(nil); !errors.As(err, &c) || c.In != c.Out+c.Fees || c.Counted != c.Settled+1 {
		t.Errorf("settled with a payment of nobody: %v", err)
	}
}

func TestTwoCurrenciesCannotCancelOut(t *testing.T) {
	t.Parallel()
	s, pool := generated(t, Config{}, Input{Payments: 200, Days: 1})
	settleAll(t, s, pool, newToken(1))
	exec(t, pool, s.sql(`
update $schema.settlement set gross = gross + 10, net = net + 10 where ctid = (select min(ctid) from $schema.settlement where currency = 'EUR');
update $schema.settlement set gross = gross - 10, net = net - 10 where ctid = (select min(ctid) from $schema.settlement where currency = 'USD')`))
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error { return s.control(t.Context(), tx, newToken(1).Logger(), days(t, s, pool)[0]) })
	if c := (*ControlError)(nil); !errors.As(err, &c) || c.In-c.Out-c.Fees != -10 {
		t.Errorf("control: %v", err)
	}
	if got := totals(t, s, pool); got.Difference != 20 || got.Missing != 0 {
		t.Errorf("totals %+v, want a difference of 20", got.Total)
	}
}

func TestTotalsSeeWhatIsTamperedWith(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		sql                             string
		difference, duplicates, missing bool
	}{
		"a fee moved into the net": {`update $schema.settlement set fees = fees - 1, net = net + 1 where fees > 0`, true, false, false},
		"a payment counted twice":  {`update $schema.settlement set payments = payments + 1 where ctid = (select min(ctid) from $schema.settlement)`, false, true, false},
		"a row gone":               {`delete from $schema.settlement where ctid = (select min(ctid) from $schema.settlement)`, true, false, true},
		"a row of another day":     {`insert into $schema.settlement values ('m0001', '2026-01-01', 'EUR', 5, 0, 0, 1, 4, 1, 1, gen_random_uuid())`, true, true, false},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s, pool := generated(t, Config{}, Input{Payments: 1000, Days: 2})
			settleAll(t, s, pool, newToken(1))
			exec(t, pool, s.sql(c.sql))
			got := totals(t, s, pool)
			if got.OK() || got.Difference > 0 != c.difference || got.Duplicates > 0 != c.duplicates || got.Missing > 0 != c.missing {
				t.Errorf("totals %+v", got.Total)
			}
		})
	}
}

func TestADayWithoutPaymentsCompletes(t *testing.T) {
	t.Parallel()
	pool, s := pgtest.New(t), New(Config{})
	if err := s.Create(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	r := newToken(1)
	r.pool = pool
	if err := s.settle(t.Context(), r, aDay(last)); err != nil || r.completed != 1 {
		t.Errorf("an empty day: %v, completed %d", err, r.completed)
	}
	if got := totals(t, s, pool); !got.OK() || got.Payments != 0 {
		t.Errorf("totals of nothing: %+v", got)
	}
}

// Behind a transaction pooler a pool prepares nothing and sends parameters as text.
func TestEveryWayOfSendingAStatementWorks(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"cache_describe", "describe_exec", "exec", "simple_protocol"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			pool, s := pgtest.Open(t, pgtest.URL(t)+"&default_query_exec_mode="+mode), New(Config{})
			if err := s.Create(t.Context(), pool); err != nil {
				t.Fatal(err)
			}
			if err := s.Generate(t.Context(), pool, Input{Payments: 1000, Days: 2, Last: last}); err != nil {
				t.Fatal(err)
			}
			settleAll(t, s, pool, newToken(1))
			if got := totals(t, s, pool); !got.OK() || got.Payments != 1000 {
				t.Errorf("totals %+v", got.Total)
			}
			if err := s.Drop(t.Context(), pool); err != nil {
				t.Error(err)
			}
		})
	}
}
