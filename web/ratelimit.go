package web

import (
	"crypto/sha256"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

const (
	wrongKeys   = 10 // from one address within wrongWindow; who comes after them waits
	wrongWindow = time.Minute
	knownFor    = 15 * time.Minute // how long a right key is let in from an address that others have closed
	remembered  = 4096             // addresses, and keys, at most
)

// limiter counts the wrong keys of each address. A right key that has been here is let in whatever others behind the
// same address do: else one client with a revoked key would lock out all that share its proxy. Its memory is bounded.
type limiter struct {
	mu    sync.Mutex
	wrong map[netip.Prefix]window
	known map[[32]byte]time.Time // right keys, by their sum, and when they came last
}

// window is how many wrong keys came since.
type window struct {
	since time.Time
	n     int
}

func newLimiter() *limiter {
	return &limiter{wrong: map[netip.Prefix]window{}, known: map[[32]byte]time.Time{}}
}

// closed is how long an address has to wait, and zero if a key from there may be checked.
func (l *limiter) closed(from netip.Prefix, bearer string, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.wrong[from]
	wait := w.since.Add(wrongWindow).Sub(now)
	if w.n < wrongKeys || wait <= 0 {
		return 0
	}
	if at, ok := l.known[sha256.Sum256([]byte(bearer))]; ok && now.Sub(at) < knownFor {
		return 0
	}
	return wait
}

// failed counts a wrong key.
func (l *limiter) failed(from netip.Prefix, bearer string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.known, sha256.Sum256([]byte(bearer)))
	w, ok := l.wrong[from]
	if !ok || now.Sub(w.since) >= wrongWindow {
		w = window{since: now}
	}
	w.n++
	l.wrong[from] = w
	if len(l.wrong) > remembered {
		forget(l.wrong, from, func(w window) time.Time { return w.since })
	}
}

// right remembers a key that was let in.
func (l *limiter) right(bearer string, now time.Time) {
	sum := sha256.Sum256([]byte(bearer))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known[sum] = now
	if len(l.known) > remembered {
		forget(l.known, sum, func(at time.Time) time.Time { return at })
	}
}

// forget drops the oldest of m but keep.
func forget[K comparable, V any](m map[K]V, keep K, at func(V) time.Time) {
	var oldest K
	var since time.Time
	for k, v := range m {
		if k != keep && (since.IsZero() || at(v).Before(since)) {
			oldest, since = k, at(v)
		}
	}
	delete(m, oldest)
}

// addressOf is who sent a request, as the server sees it: no header is believed. IPv6 networks are counted as one, since
// one machine has the whole of a /64.
func addressOf(r *http.Request) netip.Prefix {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Prefix{} // all that have none count together
	}
	addr, bits := at.Addr().Unmap().WithZone(""), 32
	if addr.Is6() {
		bits = 64
	}
	p, _ := addr.Prefix(bits) // of these lengths there always is one
	return p
}
