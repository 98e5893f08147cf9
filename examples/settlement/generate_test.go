package settlement

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/internal/pgtest"
)

var last = time.Date(2026, 9, 16, 15, 4, 5, 0, time.UTC)

// generated is a settlement with tables and payments in a database of its own.
func generated(t *testing.T, cfg Config, in Input) (*Settlement, *pgxpool.Pool) {
	t.Helper()
	pool, s := pgtest.New(t), New(cfg)
	if err := s.Create(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	in.Last = last
	if err := s.Generate(t.Context(), pool, in); err != nil {
		t.Fatal(err)
	}
	return s, pool
}

const digestSQL = `select md5(string_agg(p::text, e'\n' order by id)) from
 (select p.id, merchant, extract(epoch from at)::bigint, currency, kind, amount_minor, fee_bps
    from $schema.payments p join $schema.merchant m on m.id = merchant) p`

func TestTheSameInputMakesTheSamePayments(t *testing.T) {
	t.Parallel()
	s, pool := generated(t, Config{}, Input{Payments: 5003, Days: 3})
	first := one[string](t, pool, s.sql(digestSQL))
	if err := s.Generate(t.Context(), pool, Input{Payments: 5003, Days: 3, Last: last.Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	if second := one[string](t, pool, s.sql(digestSQL)); second != first {
		t.Errorf("generated again: digest %s, was %s", second, first)
	}
	// Pinned: a demo's figures can be compared with another's, from another machine and version.
	const pinned = "a6264677e65137e3ad21e7f4e9f98940"
	if first != pinned {
		t.Errorf("digest of the payments is %s, want %s", first, pinned)
	}
}

func TestGeneratedPaymentsCoverWhatASettlementMeets(t *testing.T) {
	t.Parallel()
	s, pool := generated(t, Config{}, Input{Payments: 20_001, Days: 5})
	for what, c := range map[string]struct {
		sql       string
		low, high int
	}{
		"payments":                       {`count(*)`, 20_001, 20_001},
		"ids":                            {`max(p.id) - min(p.id) + 1`, 20_001, 20_001},
		"days":                           {`count(distinct date_trunc('day', at, 'UTC'))`, 5, 5},
		"payments of the last day":       {`count(*) filter (where at >= '2026-09-16Z' and at < '2026-09-17Z')`, 4000, 4001},
		"merchants":                      {`count(distinct merchant)`, 200, 200},
		"payments of the first merchant": {`count(*) filter (where merchant = 'm0001')`, 50, 65},
		"payments of the last merchant":  {`count(*) filter (where merchant = 'm0200')`, 300, 400},
		"currencies":                     {`count(distinct currency)`, 6, 6},
		"refunds":                        {`count(*) filter (where kind = 'refund')`, 800, 1400},
		"chargebacks":                    {`count(*) filter (where kind = 'chargeback')`, 80, 250},
		"rates":                          {`count(distinct fee_bps)`, 50, 200},
		"ties":                           {`count(*) filter (where amount_minor * fee_bps % 10000 = 5000)`, 5, 1000},
		"hours":                          {`count(distinct extract(hour from at at time zone 'UTC'))`, 24, 24},
	} {
		got := one[int](t, pool, s.sql(`select (`+c.sql+`)::int from $schema.payments p join $schema.merchant m on m.id = p.merchant`))
		if got < c.low || got > c.high {
			t.Errorf("%s: %d, want %d to %d", what, got, c.low, c.high)
		}
	}
}

func TestGenerateTellsItsProgressAndFillsEveryDay(t *testing.T) {
	t.Parallel()
	pool, s := pgtest.New(t), New(Config{})
	if err := s.Create(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	var made []int
	err := s.Generate(t.Context(), pool, Input{Payments: 11, Days: 4, Merchants: 2, Progress: func(done, _ int) { made = append(made, done) }})
	if err != nil {
		t.Fatal(err)
	}
	if len(made) != 4 || made[3] != 11 || made[0] != 2 {
		t.Errorf("progress %v, want four steps up to 11", made)
	}
	if got := one[int](t, pool, s.sql(`select count(*)::int from $schema.payments`)); got != 11 {
		t.Errorf("%d payments, want 11", got)
	}
}

func TestAnInputThatMakesNoSenseIsRefused(t *testing.T) {
	t.Parallel()
	for field, in := range map[string]Input{
		"Payments": {Payments: -1}, "Days": {Days: -1}, "Merchants": {Merchants: 10_000},
	} {
		// No pool: the input is looked at first.
		err := New(Config{}).Generate(t.Context(), nil, in)
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%+v: %v, want an error that names %s", in, err, field)
		}
	}
}
