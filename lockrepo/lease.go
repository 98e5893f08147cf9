package lockrepo

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"pawl/fence"
)

// Lease is one holder's claim on a lock. It is a value: Renew returns a new
// one and leaves the old as it was.
type Lease struct {
	Token      fence.Token
	Grant      uuid.UUID // the id that the client made before it asked
	Holder     string
	TTL        time.Duration
	AcquiredAt time.Time // by the database's clock, zero if not known
	ExpiresAt  time.Time // by the database's clock, zero if not known

	sent   Instant       // our clocks, before the request that made or renewed it
	margin time.Duration // distrust it this long before its end
}

// trusted is how long after sent the holder may believe in the lease.
func (l *Lease) trusted() time.Duration { return l.TTL - l.margin }

// left is how long the lease may still be believed in, by what is proven.
func (l *Lease) left(now Instant) time.Duration { return l.trusted() - now.proven(l.sent) }

const (
	minTTL  = 100 * time.Millisecond
	maxTTL  = 24 * time.Hour
	maxName = 255 // as in fence
)

func checkTTL(ttl time.Duration) error {
	if ttl < minTTL || ttl > maxTTL {
		return badInput("TTL %v: give one between %v and %v", ttl, minTTL, maxTTL)
	}
	return nil
}

func checkName(lock string) error {
	switch {
	case lock == "":
		return badInput(`lock name is empty: give one, such as "report:acme"`)
	case len(lock) > maxName:
		return badInput("lock name has %d bytes: shorten it to at most %d", len(lock), maxName)
	case !isText(lock):
		return badInput("lock name %q is not UTF-8 text: remove the bytes that are not", lock)
	}
	return nil
}

// isText reports whether the database takes s for text.
func isText(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }
