package web

import (
	"context"
	"errors"
	"net/http"

	"pawl/lockrepo/keys"
	"pawl/web/ui"
)

// keyCookie holds the key that somebody has signed in with. Only the pages read it: what a browser sends by itself must
// not reach the lock API.
const keyCookie = "pawl_key"

// newPages are the pages, which the gate lets people into.
func newPages(cfg Config, g *gate) *ui.UI {
	c := ui.Config{
		Locks: cfg.Locks, Jobs: cfg.Jobs, Approvals: cfg.Approvals, Acts: cfg.Acts, API: cfg.API != nil, Who: g.viewer, ReadOnly: cfg.ReadOnly, Cross: cfg.Cross, Wrong: cfg.Wrong,
		BasePath: cfg.BasePath, Database: cfg.Database, Version: cfg.Version, Logger: cfg.Logger,
	}
	c.Notice = func(ctx context.Context) string {
		if !cfg.Insecure || !g.keysInUse(ctx).None {
			return "" // with keys nobody is answered without one
		}
		return "No sign-in. As long as no key is made, everybody who can reach this address can read and do everything here" + also(cfg.API != nil) + "."
	}
	switch {
	case cfg.User != nil:
		c.Who = cfg.User
	case cfg.Proxy != nil:
		c.Who = cfg.Proxy.before(g.viewer)
	}
	if cfg.Keys != nil {
		c.Keys = cfg.Keys
	}
	if cfg.Artifacts != nil {
		c.Artifacts = cfg.Artifacts
	}
	if cfg.User == nil && cfg.Keys != nil {
		c.SignIn = func(r *http.Request, bearer string) (*http.Cookie, error) { return g.signIn(r, bearer, cfg.BasePath) }
		c.SignOut = func(r *http.Request) *http.Cookie { return cookie(r, "", cfg.BasePath) }
	}
	return ui.New(c)
}

func also(api bool) string {
	if api {
		return ", and take and release locks"
	}
	return ""
}

// viewer tells who looks at a page: by a key in the cookie or in the header, or, where no key was ever made, anybody.
func (g *gate) viewer(r *http.Request) (ui.User, error) {
	if c, err := r.Cookie(keyCookie); err == nil && c.Value != "" && r.Header.Get("Authorization") == "" && g.keys != nil {
		k, err := g.check(r, c.Value)
		var p *problemError
		if errors.As(err, &p) && p.kind.status == http.StatusUnauthorized {
			return ui.User{}, ui.ErrSignIn // revoked or expired since
		}
		return userOf(k, true, err)
	}
	k, err := g.admit(r, keys.Reader)
	var p *problemError
	if errors.As(err, &p) && p.kind.status == http.StatusUnauthorized && p.challenge == "" {
		return ui.User{}, ui.ErrSignIn
	}
	return userOf(k, false, err)
}

func userOf(k keys.Key, signedIn bool, err error) (ui.User, error) {
	var p *problemError
	switch {
	case errors.As(err, &p):
		return ui.User{}, &ui.RefusedError{Status: p.kind.status, Title: p.kind.title, Detail: p.detail}
	case err != nil:
		return ui.User{}, err
	case k.Prefix != "":
		return ui.User{}, &ui.RefusedError{
			Status: http.StatusForbidden, Title: forbidden.title, Href: "/ui/sign-in", Link: "Sign in with another key",
			Detail: "The pages show every lock, and this key reaches only those under its prefix: use another key.",
		}
	}
	return ui.User{ID: k.ID, Name: k.Name, Role: k.Role, Approver: k.Approver || k.ID == anonymous, SignedIn: signedIn}, nil
}

// signIn checks a key that was pasted, and makes the cookie that holds it.
func (g *gate) signIn(r *http.Request, bearer, base string) (*http.Cookie, error) {
	k, err := g.check(r, bearer)
	if _, err = userOf(k, true, err); err != nil {
		return nil, err
	}
	return cookie(r, bearer, base), nil
}

// cookie is sent to the pages only, by our own pages only, and can't be read by a script.
func cookie(r *http.Request, value, base string) *http.Cookie {
	c := &http.Cookie{Name: keyCookie, Value: value, Path: base + "/", HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: ui.OverTLS(r)}
	if value == "" {
		c.MaxAge = -1
	}
	return c
}
