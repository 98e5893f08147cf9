package lockclient

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"pawl/fence"
	"pawl/internal/clocks"
)

// Lease is one holder's claim on a lock. It is a value: Renew returns a new
// one and leaves the old as it was.
type Lease struct {
	Token      fence.Token
	Holder     string        // made for this acquisition alone
	TTL        time.Duration // as it is asked for; the server may give less, up to its --max-hold: ExpiresAt and Left tell
	AcquiredAt time.Time     // by the database's clock
	ExpiresAt  time.Time     // by the database's clock

	sent    clocks.Reading // our clocks, before the request that made or renewed it
	renewed time.Time      // by the database's clock
	term    time.Duration  // from renewed to ExpiresAt, at most TTL
	margin  time.Duration  // distrust it this long before its end
}

// Left is how long the holder may still believe in the lease, by this
// machine's clocks; 0 or less: not any more. A renewal moves it, in the Lease
// that it returns.
func (l Lease) Left() time.Duration { return l.left(clocks.Now()) }

// left is Left by what is proven.
func (l *Lease) left(now clocks.Reading) time.Duration { return l.trusted() - now.Proven(l.sent) }

// trusted is how long after sent the holder may believe in the lease.
func (l *Lease) trusted() time.Duration { return l.term - l.margin }

const (
	minTTL  = time.Second
	maxTTL  = 24 * time.Hour
	maxName = 255 // as in fence
)

func checkTTL(ttl time.Duration) error {
	if ttl < minTTL || ttl > maxTTL || ttl%time.Second != 0 {
		return fmt.Errorf("TTL %v: give whole seconds between %v and %v", ttl, minTTL, maxTTL)
	}
	return nil
}

func checkName(lock string) error {
	switch {
	case lock == "":
		return fmt.Errorf(`lock name is empty: give one, such as "report:acme"`)
	case len(lock) > maxName:
		return fmt.Errorf("lock name has %d bytes: shorten it to at most %d", len(lock), maxName)
	case !utf8.ValidString(lock) || strings.ContainsRune(lock, 0):
		return fmt.Errorf("lock name %q is not UTF-8 text: remove the bytes that are not", lock)
	}
	return nil
}
