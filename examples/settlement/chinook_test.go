package settlement

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"pawl/internal/pgtest"
	"pawl/lockrepo"
)

// chinookRate is what every country's store pays.
const chinookRate = 290

type invoice struct {
	ID      int64
	Country string
	At      time.Time
	Total   string
}

func TestARealStoresInvoicesAreSettledToTheCent(t *testing.T) {
	t.Parallel()
	pool, s := pgtest.New(t), New(Config{})
	if err := s.Create(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	pgtest.Invoices(t, pool)
	rows, err := pool.Query(t.Context(), `select invoice_id, billing_country, invoice_date at time zone 'UTC', total::text from invoice`)
	if err != nil {
		t.Fatal(err)
	}
	invoices, err := pgx.CollectRows(rows, pgx.RowToStructByPos[invoice])
	if err != nil {
		t.Fatal(err)
	}
	var fees int64
	source := pgx.CopyFromSlice(len(invoices), func(i int) ([]any, error) {
		v := invoices[i]
		minor, err := ParseMinor(v.Total, "USD")
		fees += Fee(minor, chinookRate)
		return []any{v.ID, v.Country, v.At, "USD", "sale", minor}, err
	})
	columns := []string{"id", "merchant", "at", "currency", "kind", "amount_minor"}
	if _, err := pool.CopyFrom(t.Context(), pgx.Identifier{"pawl_demo", "payments"}, columns, source); err != nil {
		t.Fatal(err)
	}
	exec(t, pool, s.sql(`insert into $schema.merchant select distinct merchant, $1::int from $schema.payments`), chinookRate)

	all := days(t, s, pool)
	repo, err := lockrepo.New(lockrepo.Config{Pool: pool})
	if err != nil {
		t.Fatal(err)
	}
	defer repo.Close()
	lease, err := repo.Acquire(t.Context(), "job:settlement", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	r := guarded{&unguarded{pool: pool, token: lease.Token}}
	for _, d := range all {
		r.saved = nil
		if err := s.settle(t.Context(), r, d); err != nil {
			t.Fatal(err)
		}
	}

	got := totals(t, s, pool)
	if len(all) != 354 || r.completed != 354 || got.Payments != 412 {
		t.Errorf("%d days, %d of them complete, %d invoices; want 354, 354 and 412", len(all), r.completed, got.Payments)
	}
	if got.Settled+got.Fees != 232_860 || got.Fees != fees || !got.OK() {
		t.Errorf("settled %s plus fees %s, want 2328.60 in all and fees of %s; %+v",
			FormatMinor(got.Settled, "USD"), FormatMinor(got.Fees, "USD"), FormatMinor(fees, "USD"), got.Total)
	}
}
