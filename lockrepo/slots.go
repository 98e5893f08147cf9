package lockrepo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
)

const maxSlots = 1000

// Slots that can be taken at this moment: it only spares the others a try. What is no row yet is free.
const freeSlotsSQL = `
select s.name from unnest($1::text[]) s (name)
 where not exists (select from pawl.locks l where l.name = s.name and l.grant_id is not null and l.expires_at > clock_timestamp())`

// AcquireSlot tries once to take one of n permits (1 to 1000) that go by a name: the locks name#0 to name#n-1, each a lock as
// any other, with a token of its own. It never waits; if all are held it answers a [*SlotsError], which is [ErrHeld]. When n is made
// smaller, who holds a higher slot keeps it until its lease ends.
//
// A permit bounds how many work at once. It orders nobody: two holders' tokens don't compare.
func (r *Repo) AcquireSlot(ctx context.Context, name string, n int, ttl time.Duration) (Lease, error) {
	names, err := slots(name, n)
	if err != nil {
		return Lease{}, fmt.Errorf("lockrepo: acquire slot: %w", err)
	}
	free, err := r.freeSlots(ctx, names)
	if err != nil {
		return Lease{}, fmt.Errorf("lockrepo: acquire slot of %q: %w", name, err)
	}
	// In no order, or all who come at once would ask for the same one.
	rand.Shuffle(len(free), func(i, j int) { free[i], free[j] = free[j], free[i] })
	for _, slot := range free {
		l, err := r.Acquire(ctx, slot, ttl)
		if !errors.Is(err, ErrHeld) {
			return l, err
		}
	}
	return Lease{}, &SlotsError{Name: name, Limit: n}
}

// HoldSlot is [Repo.Hold] for one of n permits.
func (r *Repo) HoldSlot(ctx context.Context, name string, n int, fn func(ctx context.Context, l Lease) error) error {
	l, err := r.AcquireSlot(ctx, name, n, r.cfg.TTL)
	if err != nil {
		return err
	}
	return r.hold(ctx, l, fn)
}

func slots(name string, n int) ([]string, error) {
	if n < 1 || n > maxSlots {
		return nil, badInput("limit of slots %d: give 1 to %d", n, maxSlots)
	}
	names := make([]string, n)
	for i := range names {
		names[i] = name + "#" + strconv.Itoa(i)
	}
	if name == "" {
		return nil, checkName(name)
	}
	return names, checkName(names[n-1])
}

func (r *Repo) freeSlots(ctx context.Context, names []string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	rows, err := r.cfg.Pool.Query(ctx, freeSlotsSQL, names)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// SlotsError says that all permits of a name are held.
type SlotsError struct {
	Name  string
	Limit int
}

// Error names the permits.
func (e *SlotsError) Error() string {
	return fmt.Sprintf("lockrepo: all %d slots of %q are held", e.Limit, e.Name)
}

// Is reports whether target is [ErrHeld].
func (e *SlotsError) Is(target error) bool { return target == ErrHeld }
