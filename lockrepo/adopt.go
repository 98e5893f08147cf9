package lockrepo

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"pawl/fence"
)

// Adopt makes the clock row that of the server's present start and raises the
// floor of all tokens, so that none is issued again after a failover. Acquire
// calls it by itself. A database that was restored from another server is
// refused with [fence.ErrOtherDatabase] unless elsewhere says that this copy
// may run what is owed.
func (r *Repo) Adopt(ctx context.Context, elsewhere bool) error {
	err := r.ask(ctx, query{"select pawl.adopt($1::bool)", []any{elsewhere}, func(rows pgx.Rows) error {
		rows.Close()
		return rows.Err()
	}})
	if err != nil {
		return fmt.Errorf("lockrepo: adopt the database: %w", fence.Wrap(err, fence.Token{}))
	}
	return nil
}
