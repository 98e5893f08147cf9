package ui

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"

	"pawl/lockrepo/keys"
)

// User is who looks, and what they may.
type User struct {
	ID       string // compared where two people are needed: a key's id, or what the sign-in in front of pawl says
	Name     string
	Role     string // keys.Reader, keys.Worker or keys.Operator
	Approver bool   // may decide what others ask for
	SignedIn bool   // by a key in a cookie: there is something to sign out of
}

// may reports whether the user's role reaches another.
func (u User) may(role string) bool {
	rank := map[string]int{keys.Reader: 1, keys.Worker: 2, keys.Operator: 3}
	return rank[u.Role] >= rank[role]
}

// ErrSignIn is the answer to who doesn't say who they are: they are asked to.
var ErrSignIn = errors.New("ui: sign in first")

// Config is what the pages show, and to whom.
type Config struct {
	Locks     Locks
	Jobs      Jobs
	Approvals Approvals // nil: there are none here
	Keys      Keys      // nil: there are none here
	Artifacts Artifacts // nil: this server has no store, so nothing is downloaded
	Acts      Acts      // nil: read only

	API bool // the lock API is served too: there is a description of it

	Who      func(*http.Request) (User, error)                 // [ErrSignIn], a [*RefusedError], or any other error: it can't be known now
	SignIn   func(*http.Request, string) (*http.Cookie, error) // the cookie for a key that was pasted; nil: nobody signs in here
	SignOut  func(*http.Request) *http.Cookie                  // the cookie that ends it
	ReadOnly bool                                              // nobody may do anything here, whatever their role
	Cross    *http.CrossOriginProtection                       // what other sites may send; nil: nothing. Add the public origin where a proxy rewrites Host
	Wrong    func() []string                                   // what of the job file can't be used, a line each
	Notice   func(context.Context) string                      // a warning above every page; empty: none
	BasePath string                                            // as in /pawl; empty is the root
	Database string                                            // what the bar calls it
	Version  string
	Logger   *slog.Logger // nil discards
}

func (c Config) withDefaults() Config {
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	c.Version = cmp.Or(c.Version, "unknown version")
	if c.BasePath = strings.Trim(c.BasePath, "/"); c.BasePath != "" {
		c.BasePath = "/" + c.BasePath
	}
	c.ReadOnly = c.ReadOnly || c.Acts == nil
	if c.Wrong == nil {
		c.Wrong = func() []string { return nil }
	}
	if c.Notice == nil {
		c.Notice = func(context.Context) string { return "" }
	}
	return c
}
