package approvals

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ForceRelease is the action of a [Request] to release a lease by force.
const ForceRelease = "force_release"

// The states of a [Request].
const (
	Pending  = "pending"  // may be decided
	Approved = "approved" // and carried out
	Declined = "declined" // by an approver, or taken back by who asked
	Expired  = "expired"  // nobody decided in time
	Stale    = "stale"    // its lease ended before the decision
)

// Anonymous is the id of whoever comes while no key was ever made: then, and
// only then, it may ask and approve without Person.Approver.
const Anonymous = "anonymous"

// Person is who asks or decides. ID is what tells people apart: a key's id,
// proxy:name, cli:user@host, or what a program's own sign-in says; Name is for
// those who read, the ID if it is empty. Approver says whether the person may
// approve; of a key the database knows that itself.
type Person struct {
	ID, Name string
	Approver bool
}

// Request is what somebody has asked for. Times are UTC by the database's clock.
type Request struct {
	ID            int64      `json:"id"`
	Action        string     `json:"action"` // force_release
	Lock          string     `json:"lock"`
	Token         int64      `json:"token"` // of the lease that is meant
	Reason        string     `json:"reason"`
	Kill          bool       `json:"kill"` // also terminate the holder's open guarded transactions
	RequestedByID string     `json:"requested_by_id"`
	RequestedBy   string     `json:"requested_by"`
	RequestedAt   time.Time  `json:"requested_at"`
	ExpiresAt     time.Time  `json:"expires_at"`    // from then on it can't be approved
	State         string     `json:"state"`         // pending, approved, declined, expired or stale, as of now
	DecidedByID   string     `json:"decided_by_id"` // empty: nobody
	DecidedBy     string     `json:"decided_by"`
	DecidedAt     *time.Time `json:"decided_at"` // nil: not decided, or nobody came to find it expired or stale
	Note          string     `json:"note"`       // of who decided
	Self          bool       `json:"self"`       // one person asked and approved: single operator
	Holder        string     `json:"holder"`     // who holds the lock now, empty if nobody
}

// Store keeps requests and the settings that they go by. It is safe for
// concurrent use.
type Store struct {
	pool *pgxpool.Pool
	log  *slog.Logger
}

// New returns a Store of the requests in pool's database. A nil log discards.
func New(pool *pgxpool.Pool, log *slog.Logger) *Store {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Store{pool: pool, log: log}
}

const (
	// exec prepares nothing, so that a pooler may stand between.
	exec = pgx.QueryExecModeExec
	// The functions want READ COMMITTED, whatever the role's default is.
	beginSQL = "begin isolation level read committed"
	// callTimeout bounds what has no deadline of its own.
	callTimeout = 10 * time.Second
)

// inTx commits what fn does, unless it fails.
func (s *Store) inTx(ctx context.Context, fn func(context.Context, pgx.Tx) error) error {
	if _, own := ctx.Deadline(); !own {
		soon, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		ctx = soon
	}
	tx, err := s.pool.BeginTx(ctx, pgx.TxOptions{BeginQuery: beginSQL})
	if err != nil {
		return err
	}
	defer tx.Rollback(context.WithoutCancel(ctx))
	if err := fn(ctx, tx); err != nil {
		return err
	}
	return tx.Commit(ctx)
}
