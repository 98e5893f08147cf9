package migrations

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
)

// TooOldError says that the schema can't be used by a binary as old as this.
type TooOldError struct {
	Binary int // The schema number of this binary.
	Needed int // The smallest that the schema allows.
}

func (e *TooOldError) Error() string {
	return fmt.Sprintf("migrations: this pawl is too old: the schema pawl needs one of schema number %d or newer, this one has %d; install a newer pawl",
		e.Needed, e.Binary)
}

// NotMigratedError says that the schema lacks what this binary uses.
type NotMigratedError struct {
	Missing []string // The names of the migrations that have not been applied.
}

func (e *NotMigratedError) Error() string {
	return fmt.Sprintf("migrations: the database lacks %s; run: pawl migrate up", strings.Join(e.Missing, ", "))
}

const checkSQL = `select version, min_binary from ` + schema + `.schema_info`

// Check tells whether a binary of the given schema number, [Binary] for this
// one, may use the database. It returns an *[OldServerError] when the server
// is too old, a *[NotMigratedError] when tables are absent or behind and a
// *[TooOldError] when the schema has left the binary behind. A schema that is
// newer, but still allows the binary, is fine.
func Check(ctx context.Context, pool *pgxpool.Pool, binary int) error {
	if err := checkServer(ctx, pool); err != nil {
		return wrap("check", err)
	}
	missing, err := pending(ctx, pool)
	if err != nil {
		return wrap("check", err)
	}
	if len(missing) > 0 {
		return &NotMigratedError{Missing: missing}
	}
	var version, needed int
	if err := pool.QueryRow(ctx, checkSQL).Scan(&version, &needed); err != nil {
		return wrap("check", err)
	}
	switch {
	case binary < needed:
		return &TooOldError{Binary: binary, Needed: needed}
	case version < binary:
		return &NotMigratedError{Missing: []string{fmt.Sprintf("schema number %d (it has %d)", binary, version)}}
	}
	return nil
}
