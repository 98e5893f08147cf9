package pgtest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
)

// The columns of the sample store, and invoices with its figures: 412 on 354 days, 2328.60 in all.
const invoicesSQL = `
create table invoice (
    invoice_id int primary key, customer_id int not null, invoice_date timestamp not null, billing_address text, billing_city text,
    billing_state text, billing_country text, billing_postal_code text, total numeric(10,2) not null);
insert into invoice (invoice_id, customer_id, invoice_date, billing_country, total)
select n, n % 59 + 1, timestamp '2021-01-01' + (n - 1) % 354 * interval '5 days', 'country ' || n % 24, case when n = 412 then 6.45 else 5.65 end
  from generate_series(1, 412) n`

// Invoices makes the table invoice of a sample store. Its script is large and somebody else's, so it isn't kept here:
// PAWL_CHINOOK names the directory that has it, else it is looked for in shared/data above. Where there is none, invoices
// with the same figures take its place.
func Invoices(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	statements := []string{invoicesSQL}
	if script, ok := chinook(t); ok {
		statements = []string{statement(t, script, "CREATE TABLE invoice\n"), statement(t, script, "INSERT INTO invoice (")}
	}
	for _, sql := range statements {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
}

func chinook(t testing.TB) (script string, ok bool) {
	t.Helper()
	dir, named := os.LookupEnv("PAWL_CHINOOK")
	if !named {
		dir = filepath.Join("..", "..", "..", "shared", "data")
	}
	text, err := os.ReadFile(filepath.Join(dir, "chinook.sql"))
	if errors.Is(err, fs.ErrNotExist) && !named {
		return "", false
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(text), true
}

// statement is the script's only statement that begins so.
func statement(t testing.TB, script, begin string) string {
	t.Helper()
	_, rest, found := strings.Cut(script, "\n"+begin)
	body, _, ended := strings.Cut(rest, ");\n")
	if !found || !ended {
		t.Fatalf("the file has no statement %s", begin)
	}
	return begin + body + ")"
}
