package lockrepo

import (
	"encoding/json"
	"strconv"
	"time"
)

// Seconds is a duration that JSON sees as a number of seconds.
type Seconds time.Duration

// Duration returns it as Go's own type.
func (s Seconds) Duration() time.Duration { return time.Duration(s) }

// MarshalJSON writes seconds, to the microsecond that Postgres knows.
func (s Seconds) MarshalJSON() ([]byte, error) {
	d := time.Duration(s).Round(time.Microsecond)
	return strconv.AppendFloat(nil, d.Seconds(), 'f', -1, 64), nil
}

// UnmarshalJSON reads a number of seconds.
func (s *Seconds) UnmarshalJSON(b []byte) error {
	var f float64
	if err := json.Unmarshal(b, &f); err != nil {
		return err
	}
	*s = Seconds(time.Duration(f * float64(time.Second)).Round(time.Microsecond))
	return nil
}

// The states of a lock.
const (
	Held  = "held"  // a live lease
	Stale = "stale" // the lease expired without a release, and nobody has taken the lock since
	Free  = "free"  // no lease
)

// Info is a lock as it is now. Times are UTC by the database's clock; those
// that don't apply are nil.
type Info struct {
	Lock       string     `json:"lock"`
	State      string     `json:"state"` // held, stale or free
	Holder     string     `json:"holder"`
	Key        string     `json:"key"`
	Token      int64      `json:"token"` // the latest that was issued
	AcquiredAt *time.Time `json:"acquired_at"`
	RenewedAt  *time.Time `json:"renewed_at"` // the last grant, renewal or release
	ExpiresAt  *time.Time `json:"expires_at"`
	TTL        Seconds    `json:"ttl"`
	Job        string     `json:"job"`    // of the run that holds it
	Period     string     `json:"period"` // of the run that holds it

	Beats      int       `json:"-"` // renewals of this lease
	LongestGap Seconds   `json:"-"` // between two of them
	ReadAt     time.Time `json:"-"` // the database's clock when it was read: ages count from here
}

// Tenure is the history of one lease.
type Tenure struct {
	Lock       string     `json:"lock"`
	Token      int64      `json:"token"`
	Holder     string     `json:"holder"`
	AcquiredAt *time.Time `json:"acquired_at"`
	EndedAt    time.Time  `json:"ended_at"`  // of an expired or taken one: when the lease ran out
	How        string     `json:"how"`       // released, expired, taken_over, reacquired or forced
	Successor  *int64     `json:"successor"` // the next token, nil if none is known
	Refusals   int64      `json:"refusals"`  // writes under this token that were refused, those that log mode let pass not among them; 10,001: that many or more
	Beats      int        `json:"beats"`
	LongestGap Seconds    `json:"longest_gap"`
	Key        string     `json:"key"`        // that the lock API acquired it with, by its id; empty: not over the API
	KeyName    string     `json:"key_name"`   // the key's name; where there is none, as without keys, its id
	RequestID  string     `json:"request_id"` // of the request that acquired it; empty if it had none

	SuccessorHolder string     `json:"-"` // who took over, in StaleClaims
	SuccessorAt     *time.Time `json:"-"` // and when: until then nobody held it
	Killed          int64      `json:"-"` // backends that a forced release has terminated
}

// The kinds of a [Refusal].
const (
	Refused = "refused" // nothing was written
	Passed  = "passed"  // written all the same: its table is protected in log mode
)

// Refusal is a write that the fence turned away, or would have.
type Refusal struct {
	ID        int64     `json:"-"` // for RefusalFilter.Before
	At        time.Time `json:"at"`
	Lock      string    `json:"lock"`
	Token     *int64    `json:"token"`   // the old holder's, nil if the write came without any
	Current   int64     `json:"current"` // the lock's when it was refused
	Holder    string    `json:"holder"`  // the old holder, empty if not known
	LateBy    *Seconds  `json:"late_by"` // how long after the lease's end, nil if not known
	Target    string    `json:"target"`
	Statement string    `json:"statement"`
	Passed    bool      `json:"passed"` // log mode let it through: it was written
}
