package kinds

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/jobs"
)

// What a transaction holds.
const (
	Single       = "single"        // all statements, the guard, the expectation and the completion
	PerStatement = "per_statement" // one statement and its checkpoint
)

// SQL is a job that runs SQL statements. Text is required.
//
// The statements may not begin or end transactions, and may change settings with SET LOCAL only: others would stay on
// the connection. Those that can't run in a transaction, such as VACUUM, are work for a [Command].
type SQL struct {
	Text        string         // one or more statements, which end in semicolons
	Args        []any          // $1, $2, …: a Text, or a value as it is
	Transaction string         // Single (default) or PerStatement
	Database    *pgxpool.Pool  // another database, whose isolation Isolation is; default pawl's, and jobs.Job.Isolation
	Isolation   pgx.TxIsoLevel // default read committed
	Expect      Rows           // how many rows the last statement touches or returns
}

// Badge says how its work is fenced.
func (s SQL) Badge() string {
	switch {
	case s.Database != nil:
		return "not fenced"
	case s.Transaction == PerStatement:
		return "fenced, each statement once"
	}
	return "fenced, once"
}

// Func returns the job's function, or a [*ConfigError].
func (s SQL) Func() (jobs.Func, error) {
	s.Transaction = cmp.Or(s.Transaction, Single)
	s.Isolation = cmp.Or(s.Isolation, pgx.ReadCommitted)
	statements := split(s.Text)
	if err := s.check(statements); err != nil {
		return nil, err
	}
	w := sqlWork{SQL: s, statements: statements}
	return func(ctx context.Context, run *jobs.Run) error {
		rec := newRecorder(Capture{Max: 1 << 20}, nil, nil)
		err := w.run(ctx, run, rec)
		if err != nil || s.Transaction == PerStatement { // else it was committed with the rest
			keep(ctx, run, rec.output())
		}
		return err
	}, nil
}

func (s SQL) check(statements []statement) error {
	switch {
	case len(statements) == 0:
		return &ConfigError{"Text", s.Text, "write at least one statement"}
	case s.Transaction != Single && s.Transaction != PerStatement:
		return &ConfigError{"Transaction", s.Transaction, "use single or per_statement"}
	case s.Database != nil && s.Transaction == Single:
		return &ConfigError{"Transaction", s.Transaction, "it needs pawl's own database, where the guard is: use per_statement"}
	case !s.Expect.valid():
		return &ConfigError{"Expect", s.Expect.Op, "use =, !=, >, >=, < or <="}
	}
	for _, st := range statements {
		if first := st.words; refusedStatement(first) {
			return &ConfigError{"Text", strings.Join(first[:min(len(first), 2)], " "), "transactions are begun and ended by pawl, and settings stay on the connection: leave it out, or write SET LOCAL"}
		}
		if err := st.fits(s.Args); err != nil {
			return err
		}
	}
	return nil
}

// fits reports a parameter without an argument.
func (s statement) fits(args []any) error {
	for _, n := range s.params {
		if n < 1 || n > len(args) {
			return &ConfigError{"Args", len(args), fmt.Sprintf("a statement uses $%d: give as many arguments", n)}
		}
	}
	return nil
}

// refusedStatement reports whether a statement would end the transaction that it is in, or outlive it.
func refusedStatement(words []string) bool {
	if len(words) == 0 {
		return false
	}
	second := ""
	if len(words) > 1 {
		second = words[1]
	}
	switch words[0] {
	case "BEGIN", "START", "COMMIT", "END", "ABORT":
		return true
	case "ROLLBACK": // ROLLBACK TO, ROLLBACK WORK TO: a savepoint
		return !slices.Contains(words, "TO")
	case "PREPARE":
		return second == "TRANSACTION"
	case "SET":
		return !slices.Contains([]string{"LOCAL", "CONSTRAINTS", "TRANSACTION"}, second)
	}
	return false
}

// Rows is a condition on a number of rows. The zero Rows is met by any number.
type Rows struct {
	Op string // "=", "!=", ">", ">=", "<", "<=", or "" for no condition
	N  int64
}

func (r Rows) valid() bool {
	return slices.Contains([]string{"", "=", "!=", ">", ">=", "<", "<="}, r.Op)
}

// Met reports whether n rows meet the condition.
func (r Rows) Met(n int64) bool {
	switch r.Op {
	case "=":
		return n == r.N
	case "!=":
		return n != r.N
	case ">":
		return n > r.N
	case ">=":
		return n >= r.N
	case "<":
		return n < r.N
	case "<=":
		return n <= r.N
	}
	return true
}

// check returns the error of a number that doesn't meet the condition.
func (r Rows) check(n int64) error {
	if r.Met(n) {
		return nil
	}
	return fmt.Errorf("last statement: %d rows, expected %s%d: nothing of it was committed", n, r.Op, r.N)
}

// said writes what a statement has done.
func said(rec *recorder, number int, tag fmt.Stringer, since time.Time) {
	_, _ = fmt.Fprintf(rec, "%d: %s (%s)\n", number, tag, time.Since(since).Round(time.Millisecond))
}
