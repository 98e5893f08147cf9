package web

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"pawl/lockrepo/keys"
	"pawl/web/ui"
)

// Proxy is a sign-in before the pages: a proxy that says in a header who asks. Whoever can send from one of Networks past it
// can be anybody, so let Networks hold the proxy alone, and let it take the header off what comes from outside.
type Proxy struct {
	Header    string         // such as X-Forwarded-User
	Networks  []netip.Prefix // from where the header is believed
	Role      string         // of everybody that it names: reader (default) or operator
	Operators []string       // who is an operator, whatever Role says
	Approvers []string       // who may approve
	Logger    *slog.Logger   // nil discards
}

// Check says what can't be used.
func (p *Proxy) Check() error {
	switch {
	case p.Header == "" || http.CanonicalHeaderKey(p.Header) == "Authorization" || http.CanonicalHeaderKey(p.Header) == "Cookie" || strings.ContainsFunc(p.Header, notInHeader):
		return fmt.Errorf("web: proxy header %q can't name people: use one such as X-Forwarded-User", p.Header)
	case len(p.Networks) == 0:
		return errors.New("web: proxy networks are empty: name those that the proxy asks from, such as 127.0.0.1/32")
	case p.Role != "" && p.Role != keys.Reader && p.Role != keys.Operator:
		return fmt.Errorf("web: proxy role %q does not exist: give reader or operator", p.Role)
	}
	return nil
}

func notInHeader(r rune) bool {
	return r != '-' && (r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r))
}

// before asks the proxy's header who somebody is. Who comes without one needs a key: the pages are open to nobody else.
func (p *Proxy) before(otherwise func(*http.Request) (ui.User, error)) func(*http.Request) (ui.User, error) {
	log := cmp.Or(p.Logger, slog.New(slog.DiscardHandler))
	return func(r *http.Request) (ui.User, error) {
		names := r.Header.Values(p.Header)
		switch {
		case len(names) > 0 && !p.near(r):
			log.WarnContext(r.Context(), "web: proxy header from elsewhere ignored", "header", p.Header, "from", r.RemoteAddr)
		case len(names) > 1:
			return ui.User{}, &ui.RefusedError{Status: http.StatusBadRequest, Title: "Not understood", Detail: "The proxy has sent " + p.Header + " more than once: let it set the header, and add to none."}
		case len(names) == 1 && names[0] != "":
			return p.user(names[0])
		}
		u, err := otherwise(r)
		if err == nil && u.ID == anonymous {
			return ui.User{}, ui.ErrSignIn
		}
		return u, err
	}
}

// Trusting is what other sites may send to the pages, for [Config]: forms from these origins only, such as
// https://pawl.example.com, which a proxy that changes the host's name serves the pages at.
func Trusting(origins ...string) (*http.CrossOriginProtection, error) {
	cross := http.NewCrossOriginProtection()
	for _, o := range origins {
		if err := cross.AddTrustedOrigin(o); err != nil {
			return nil, fmt.Errorf("web: trusted origin %q: use a scheme and a host, such as https://pawl.example.com", o)
		}
	}
	return cross, nil
}

func (p *Proxy) near(r *http.Request) bool {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && slices.ContainsFunc(p.Networks, func(n netip.Prefix) bool { return n.Contains(at.Addr().Unmap().WithZone("")) })
}

const maxNamed = 100 // bytes of a name, as a key's

func (p *Proxy) user(name string) (ui.User, error) {
	if name = strings.TrimSpace(name); name == "" || len(name) > maxNamed || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
		return ui.User{}, &ui.RefusedError{Status: http.StatusBadRequest, Title: "Not understood", Detail: fmt.Sprintf("The proxy’s name for you is empty, longer than %d bytes, or no text.", maxNamed)}
	}
	u := ui.User{ID: "proxy:" + person(name), Name: name, Role: cmp.Or(p.Role, keys.Reader), Approver: slices.Contains(p.Approvers, name)}
	if slices.Contains(p.Operators, name) {
		u.Role = keys.Operator
	}
	return u, nil
}

// person is a name as it is compared where two people are needed. Who signs in as Ann, as ANN or in wide letters is one
// person to most directories; two of one spelling who are not can't approve for each other, which is the safe mistake.
func person(name string) string {
	shown := func(r rune) rune {
		if unicode.Is(unicode.Cf, r) {
			return -1
		}
		return r
	}
	return strings.Join(strings.Fields(strings.Map(shown, cases.Fold().String(norm.NFKC.String(name)))), " ")
}
