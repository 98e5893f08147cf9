package jobs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// History reads what was owed, what ran and what waits. It only reads, and every question is bounded: two seconds,
// and as many rows as the caller asks for. Give it a small pool of its own where people look at pages, so that jobs
// which hold every connection don't blind them.
type History struct {
	pool  *pgxpool.Pool
	plans planCache // of the schedules that it was asked about
}

const (
	historyTimeout = 2 * time.Second // that the server gives a question
	historyWait    = 3 * time.Second // for a connection and the answer together
	historyLimit   = 100             // rows, when the caller names no number
	historyMost    = 1000 + 1        // rows, whatever the caller asks for: a page of 1,000, and whether there are more
)

// NewHistory reads through pool, which the caller keeps and closes.
func NewHistory(pool *pgxpool.Pool) *History {
	return &History{pool: pool}
}

// limited is the number of rows to ask for.
func limited(n int) int {
	if n <= 0 {
		return historyLimit
	}
	return min(n, historyMost)
}

// read runs fn in a read-only transaction that the server ends after historyTimeout.
func (h *History) read(ctx context.Context, what string, fn func(context.Context, pgx.Tx) error) error {
	// The filters of one text have different best plans, so a plan that fits none in particular is refused; and lists want
	// their first rows, where a bitmap finds all.
	const bound = `
select set_config('statement_timeout', $1, true), set_config('plan_cache_mode', 'force_custom_plan', true), set_config('enable_bitmapscan', 'off', true)`
	ctx, cancel := context.WithTimeout(ctx, historyWait)
	defer cancel()
	opts := pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadOnly}
	err := pgx.BeginTxFunc(ctx, h.pool, opts, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, bound, fmt.Sprint(historyTimeout.Milliseconds())); err != nil {
			return err
		}
		return fn(ctx, tx)
	})
	if err != nil {
		return fmt.Errorf("jobs: read %s: %w", what, err)
	}
	return nil
}

// collect is one question whose rows become records by the names of their columns.
func collect[T any](ctx context.Context, h *History, what, sql string, args pgx.NamedArgs) ([]T, error) {
	var out []T
	err := h.read(ctx, what, func(ctx context.Context, tx pgx.Tx) error {
		rows, err := tx.Query(ctx, sql, args)
		if err != nil {
			return err
		}
		out, err = pgx.CollectRows(rows, pgx.RowToStructByName[T])
		return err
	})
	if out == nil && err == nil {
		out = []T{}
	}
	return out, err
}

// oneOf reports a state that doesn't exist before it becomes an empty answer.
func oneOf(what, state string, states ...string) error {
	if state == "" {
		return nil
	}
	for _, s := range states {
		if s == state {
			return nil
		}
	}
	return &StateError{What: what, State: state, States: states}
}

// ErrState says that a filter names a state which doesn't exist.
var ErrState = errors.New("no such state")

// StateError is an [ErrState] with what may be asked for instead.
type StateError struct {
	What   string   // run or period
	State  string   // what was asked for
	States []string // what there is
}

func (e *StateError) Error() string {
	return fmt.Sprintf("jobs: %s state %q does not exist: use one of %v", e.What, e.State, e.States)
}

// Is makes a StateError an [ErrState].
func (e *StateError) Is(target error) bool { return target == ErrState }

// utc gives times the zone that people are shown.
func utc(ts ...*time.Time) {
	for _, t := range ts {
		if t != nil {
			*t = t.UTC()
		}
	}
}
