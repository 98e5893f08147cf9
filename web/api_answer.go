package web

import (
	"time"

	"pawl/lockrepo"
)

// The API's own words: resource is the lock's name, owner its holder, fencing_token its token.
type lock struct {
	Resource     string  `json:"resource"`
	Owner        string  `json:"owner"`
	FencingToken int64   `json:"fencing_token"`
	TTLSeconds   float64 `json:"ttl_seconds"`
	AcquiredAt   *string `json:"acquired_at"`
	RenewedAt    *string `json:"renewed_at"`
	ExpiresAt    *string `json:"expires_at"`
}

type granted struct {
	Acquired bool `json:"acquired"`
	Lock     lock `json:"lock"`
}

// notGranted has no expiry where the last holder has gone and its transaction is still open.
type notGranted struct {
	Acquired  bool    `json:"acquired"`
	Resource  string  `json:"resource"`
	ExpiresAt *string `json:"expires_at"`
}

type one struct {
	Lock lock `json:"lock"`
}

// listed is a lock that need not be held.
type listed struct {
	lock
	State string `json:"state"`
}

type locks struct {
	Locks []listed `json:"locks"`
	Next  *string  `json:"next_cursor"` // null on the last page
}

type tenure struct {
	FencingToken int64   `json:"fencing_token"`
	Owner        string  `json:"owner"`
	AcquiredAt   *string `json:"acquired_at"`
	EndedAt      string  `json:"ended_at"`
	How          string  `json:"how"`
	Successor    *int64  `json:"successor"`
	Refusals     int64   `json:"refusals"`
	KeyName      *string `json:"key_name"`   // null: not acquired over this API
	RequestID    *string `json:"request_id"` // null: likewise
}

type tenures struct {
	Resource string   `json:"resource"`
	Tenures  []tenure `json:"tenures"`
	Next     *string  `json:"next_cursor"` // null on the last page
}

type checked struct {
	Current bool   `json:"current"`
	Last    *int64 `json:"last_token"` // null: never written
}

// stamp is a time as the API writes it: RFC 3339 in UTC with microseconds.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }

func stampOf(t *time.Time) *string {
	if t == nil || t.IsZero() {
		return nil
	}
	s := stamp(*t)
	return &s
}

// lockOf is the lock of a grant. One that is answered again may have been renewed since: that was its TTL before its end.
func lockOf(l lockrepo.Lease) lock {
	renewed := l.ExpiresAt.Add(-l.TTL)
	if renewed.Sub(l.AcquiredAt) < time.Millisecond {
		renewed = l.AcquiredAt
	}
	return lock{
		Resource: l.Token.Lock, Owner: l.Holder, FencingToken: l.Token.Seq, TTLSeconds: l.TTL.Seconds(),
		AcquiredAt: stampOf(&l.AcquiredAt), RenewedAt: stampOf(&renewed), ExpiresAt: stampOf(&l.ExpiresAt),
	}
}

// lockOfInfo has the TTL that was given, which may be less than what was asked for.
func lockOfInfo(i lockrepo.Info) lock {
	ttl := i.TTL.Duration()
	if i.ExpiresAt != nil && i.RenewedAt != nil {
		ttl = i.ExpiresAt.Sub(*i.RenewedAt)
	}
	return lock{
		Resource: i.Lock, Owner: i.Holder, FencingToken: i.Token, TTLSeconds: ttl.Seconds(),
		AcquiredAt: stampOf(i.AcquiredAt), RenewedAt: stampOf(i.RenewedAt), ExpiresAt: stampOf(i.ExpiresAt),
	}
}

func tenureOf(t lockrepo.Tenure) tenure {
	return tenure{
		FencingToken: t.Token, Owner: t.Holder, AcquiredAt: stampOf(t.AcquiredAt), EndedAt: stamp(t.EndedAt), How: t.How,
		Successor: t.Successor, Refusals: t.Refusals, KeyName: textOf(t.KeyName), RequestID: textOf(t.RequestID),
	}
}

// textOf is nil where nothing is known.
func textOf(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// json ends the call with a 200.
func (c *call) json(v any) {
	c.w.Header().Set("Content-Type", "application/json")
	writeJSON(c.w, v)
}
