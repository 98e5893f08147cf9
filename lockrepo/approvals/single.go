package approvals

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

const singleSQL = `select pawl.single_operator()`

// SingleOperator reports whether who asks may also approve.
func (s *Store) SingleOperator(ctx context.Context) (on bool, err error) {
	if err := s.pool.QueryRow(ctx, singleSQL, exec).Scan(&on); err != nil {
		return false, fmt.Errorf("approvals: single operator: %w", err)
	}
	return on, nil
}

// $1 on, $2 id, $3 name, $4 approver.
const setSingleSQL = `select pawl.set_single_operator($1::boolean, $2::text, $3::text, $4::boolean)`

// SetSingleOperator lets people approve what they have asked for themselves, or
// stops that, with an audit row in the same transaction. It is for teams of one,
// and it is for all locks: [ErrNotApprover] for who may not approve, or not for
// each of them.
func (s *Store) SetSingleOperator(ctx context.Context, on bool, by Person) error {
	by, err := by.check()
	if err != nil {
		return fmt.Errorf("approvals: set single operator: %w", err)
	}
	var outcome string
	err = s.inTx(ctx, func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, setSingleSQL, exec, on, by.ID, by.Name, by.Approver).Scan(&outcome)
	})
	switch {
	case err != nil:
		return fmt.Errorf("approvals: set single operator: %w", err)
	case outcome != "set":
		return fmt.Errorf("%w: %q", ErrNotApprover, by.Name)
	}
	s.log.WarnContext(ctx, "single operator set", "on", on, "actor", by.Name)
	return nil
}
