package web

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"pawl/lockrepo/keys"
)

// anonymous is who asks where no key was ever made. Its id stands in the locks.
const anonymous = "anonymous"

// gate tells who asks, and what they may.
type gate struct {
	keys  Keys // nil: none
	open  bool // to all who reach the address, by whatever name
	log   *slog.Logger
	wrong *limiter
}

func newGate(cfg Config) *gate {
	return &gate{keys: cfg.Keys, open: cfg.Insecure, log: cfg.Logger, wrong: newLimiter()}
}

// admit returns the key behind a request, if its role reaches.
func (g *gate) admit(r *http.Request, role string) (keys.Key, error) {
	if name := repeatedHeader(r.Header); name != "" {
		return keys.Key{}, refuse(malformed, name+" was sent more than once: send it once.")
	}
	k, err := g.who(r)
	if err == nil && !outranks(k.Role, role) {
		err = refuse(forbidden, "This key is a "+k.Role+"'s, and this needs a "+role+"'s: use another key.")
	}
	return k, err
}

func (g *gate) who(r *http.Request) (keys.Key, error) {
	everybody := keys.Key{ID: anonymous, Name: anonymous, Role: keys.Operator}
	if g.keys == nil {
		return everybody, nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), storeTimeout)
	defer cancel()
	inUse, err := g.keys.Any(ctx)
	switch {
	case err != nil:
		return keys.Key{}, uncheckedError{err}
	case !inUse && !g.open && rebindable(r.Host):
		return keys.Key{}, refuse(forbidden, "Without any key this answers to addresses in digits and to names without a dot: ask one of these, or make a key with pawl key create.")
	case !inUse:
		return everybody, nil
	}
	bearer, ok := bearerOf(r.Header)
	if !ok {
		return keys.Key{}, refuse(unauthorized, "This needs a key: send it as Authorization: Bearer pawl_…; people sign in at ui/sign-in.")
	}
	return g.check(r.WithContext(ctx), bearer)
}

// keysInUse is whether who asks must show a key. Not known where the keys can't be asked for.
type keysInUse struct{ Needed, None bool }

func (g *gate) keysInUse(ctx context.Context) keysInUse {
	if g.keys == nil {
		return keysInUse{None: true}
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	inUse, err := g.keys.Any(ctx)
	return keysInUse{Needed: inUse, None: err == nil && !inUse}
}

// rebindable tells whether the host that was asked for is a name with dots, whose address its owner decides. Loopback is
// no boundary then: to a browser on this machine the pages of a name that is made to lead there are of one origin with us.
func rebindable(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return err != nil && strings.Contains(host, ".") && !strings.HasSuffix(host, ".localhost")
}

// check asks for a key, unless too many wrong ones came from where this one comes from.
func (g *gate) check(r *http.Request, bearer string) (keys.Key, error) {
	from := addressOf(r)
	if wait := g.wrong.closed(from, bearer, time.Now()); wait > 0 {
		return keys.Key{}, &problemError{kind: rateLimited, retry: wait, detail: "Too many wrong keys came from this address: wait, and use a key that is right."}
	}
	k, err := g.keys.Check(r.Context(), bearer)
	switch {
	case errors.Is(err, keys.ErrUnknownKey):
		g.wrong.failed(from, bearer, time.Now())
		g.log.WarnContext(r.Context(), "web: wrong key", "from", from.String(), "error", err)
		p := refuse(unauthorized, "This key is unknown, revoked or expired: use another one.")
		p.challenge = `, error="invalid_token"`
		return keys.Key{}, p
	case err != nil:
		return keys.Key{}, uncheckedError{err}
	}
	g.wrong.right(bearer, time.Now())
	return k, nil
}

// uncheckedError says that nobody could judge a key.
type uncheckedError struct{ error }

// Unwrap returns why.
func (e uncheckedError) Unwrap() error { return e.error }

// bearerOf is the key that was sent.
func bearerOf(h http.Header) (string, bool) {
	scheme, token, _ := strings.Cut(h.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	return token, strings.EqualFold(scheme, "Bearer") && token != ""
}

// outranks reports that a role reaches what asks for another.
func outranks(has, need string) bool {
	ranks := []string{"", keys.Reader, keys.Worker, keys.Operator}
	return slices.Index(ranks, has) >= slices.Index(ranks, need) && slices.Contains(ranks, has)
}

// guarded lets a page's handler see who the table lets in. A key that reaches only some names can't see all of them.
func (g *gate) guarded(base, role string, next http.HandlerFunc, away func(http.ResponseWriter, *http.Request, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		k, err := g.admit(r, role)
		switch {
		case err == nil && k.Prefix == "":
			next(w, r)
		case err == nil:
			problem(w, r, base, forbidden, "This shows every lock, and this key reaches only those under its prefix: use another key, or GET /locks.")
		case errors.As(err, new(uncheckedError)):
			away(w, r, err)
		default:
			g.log.DebugContext(r.Context(), "web: refused", "path", r.URL.Path, "key", k.Name, "request_id", requestID(w), "error", err)
			problemOf(err).answer(w, r, base)
		}
	}
}
