package fence

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// The SQLSTATEs that pawl's functions and triggers raise.
const (
	CodeStale         = "PW001" // a newer token exists
	CodeNotHeld       = "PW002" // the lease has ended; nobody has taken the lock since
	CodeUnfenced      = "PW003" // a write to a protected table without a lease on its lock
	CodeOtherLock     = "PW004" // the target belongs to another lock
	CodeOtherDatabase = "PW005" // this database was restored from another server
)

// codeSerialization is Postgres' own: at REPEATABLE READ a guard meets it when its lock was taken over.
const codeSerialization = "40001"

// What errors.Is finds. The facts of a stale token are in [*StaleError].
var (
	// ErrStale: a newer token of this lock exists, or the target has seen one.
	ErrStale = errors.New("fence: token is stale")
	// ErrNotHeld: the lease that the token belongs to has ended. A guard that finds a newer token is both.
	ErrNotHeld = errors.New("fence: lease is not held")
	// ErrUnfenced: a protected table was written outside a guarded transaction.
	ErrUnfenced = errors.New("fence: write to a protected table without a lease on its lock")
	// ErrOtherLock: the target's mark is a token of another lock, and those don't compare.
	ErrOtherLock = errors.New("fence: target belongs to another lock")
	// ErrOtherDatabase: the database is a restored copy; pawl adopt says that it may run what is owed.
	ErrOtherDatabase = errors.New("fence: database was restored from another server")
	// ErrUnknown: the reply to COMMIT was lost. Ask with SELECT … FOR UPDATE on a row that the transaction updated; one that
	// it inserted can't be waited for so.
	ErrUnknown = errors.New("fence: outcome of COMMIT is unknown, ask with SELECT … FOR UPDATE on a row that it updated")
	// ErrNested: Guard was given a savepoint, with which the guard would go when it is rolled back.
	ErrNested = errors.New("fence: guard inside a savepoint; pass the outermost transaction")
)

// StaleError is a refusal: the token may not write any more. It is [ErrStale] when a newer token exists, [ErrNotHeld]
// when a guard says that the lease has ended, and both when a guard has met a newer token. Stop writing; to go on,
// acquire the lock again and read again.
type StaleError struct {
	Token   Token  // the one that was refused
	Current int64  // the newest token of the lock, or the target's mark; 0 if unknown
	Holder  string // who has the lock now; "" if nobody, or unknown
	Target  string // the target or table that refused; "" when it was the guard
	Code    string // SQLSTATE: PW001, PW002 or 40001
	Err     error  // what Postgres said
}

// Error says what happened, to which token, what is current, and what to do.
func (e *StaleError) Error() string {
	var b strings.Builder
	if e.Target != "" {
		fmt.Fprintf(&b, "fence: %s refused token %s", e.Target, e.Token)
	} else {
		fmt.Fprintf(&b, "fence: lease %s has ended", e.Token)
	}
	switch {
	case e.Current == e.Token.Seq && e.Target != "":
		b.WriteString(", which it has seen already")
	case e.Current > e.Token.Seq:
		b.WriteString(", token " + FormatSeq(e.Current) + " is current")
	case e.Code == codeSerialization:
		b.WriteString(", the lock was taken over since this transaction's snapshot")
	}
	if e.Holder != "" && e.Current > e.Token.Seq {
		b.WriteString(" and held by " + e.Holder)
	}
	return b.String() + "; stop writing and acquire the lock again"
}

// Is makes errors.Is find [ErrStale] and [ErrNotHeld].
func (e *StaleError) Is(target error) bool {
	return target == ErrStale && e.Code != CodeNotHeld || target == ErrNotHeld && e.Target == ""
}

// Unwrap returns what Postgres said: errors.As finds the *pgconn.PgError.
func (e *StaleError) Unwrap() error { return e.Err }

// Wrap turns what pawl's functions and triggers raise into this package's errors, for statements that the caller has
// sent itself: PW001, PW002 and a guard's 40001 become a [*StaleError], PW003 to PW005 become [ErrUnfenced],
// [ErrOtherLock] and [ErrOtherDatabase], with Postgres' error inside. Every other error, and nil, it returns unchanged.
func Wrap(err error, tok Token) error {
	var stale *StaleError
	var pg *pgconn.PgError
	if errors.As(err, &stale) || !errors.As(err, &pg) {
		return err
	}
	switch pg.Code {
	case CodeStale, CodeNotHeld:
		d := detailOf(pg)
		return &StaleError{Token: tok, Current: d.Current, Holder: d.Holder, Target: d.Target, Code: pg.Code, Err: err}
	case codeSerialization:
		if byGuard(pg) {
			return &StaleError{Token: tok, Code: pg.Code, Err: err}
		}
	case CodeUnfenced:
		return because(ErrUnfenced, err)
	case CodeOtherLock:
		return because(ErrOtherLock, err)
	case CodeOtherDatabase:
		return otherDatabase(err)
	}
	return err
}

func because(sentinel, err error) error {
	if errors.Is(err, sentinel) {
		return err
	}
	return fmt.Errorf("%w: %w", sentinel, err)
}

// otherDatabase also says what to do: whoever meets it first has only the error.
func otherDatabase(err error) error {
	if errors.Is(err, ErrOtherDatabase) {
		return err
	}
	return fmt.Errorf("%w; if this copy may run what it owes, say so with: pawl adopt (%w)", ErrOtherDatabase, err)
}

// detail is the JSON that pawl's functions put into DETAIL.
type detail struct {
	Current   int64  `json:"current"`
	Holder    string `json:"holder"`
	Target    string `json:"target"`
	Statement string `json:"statement"`
}

// detailOf reads it; a DETAIL that isn't ours reads as nothing known.
func detailOf(pg *pgconn.PgError) (d detail) {
	if json.Unmarshal([]byte(pg.Detail), &d) != nil {
		return detail{}
	}
	return d
}

// byGuard says whether a guard raised the error: a mark's 40001 is an ordinary conflict, which may be tried again.
func byGuard(pg *pgconn.PgError) bool {
	return strings.Contains(pg.Where, "pawl.guard") || strings.Contains(pg.Where, "pawl.enforce")
}
