package ui

import (
	"context"
	"errors"
	"time"

	"pawl/lockrepo"
)

// claimsPage is the list of leases that ended without a release.
type claimsPage struct {
	State, Lock string
	Claims      Panel[lockrepo.Tenure]
	Next        string
	now         time.Time
	err         error // what was asked for can't be
}

// States are what may be chosen.
func (claimsPage) States() []choice { return claimChoices() }

// Filtered reports that not all are asked for.
func (p claimsPage) Filtered() bool { return p.State+p.Lock != "" }

func claimChoices() []choice {
	return []choice{{Words: "all"}, {Value: "open", Words: "not taken over"}}
}

func (u *UI) claims(q *request) error {
	query := q.r.URL.Query()
	state, err := chosen(query, "state", "", claimChoices())
	if err != nil {
		return err
	}
	f := lockrepo.StaleFilter{Open: state.Value == "open", Lock: query.Get("lock"), Before: query.Get("before")}
	data := share(q.r.Context(), u.shared, "claims?"+query.Encode(), func(ctx context.Context) claimsPage {
		return u.readClaims(ctx, f, state)
	})
	if data.err != nil {
		return data.err
	}
	return u.render(q, view{Name: "claims", Title: "Stale claims", Nav: "locks", Now: data.now, Data: data})
}

func (u *UI) readClaims(ctx context.Context, f lockrepo.StaleFilter, state choice) claimsPage {
	p := claimsPage{State: state.Value, Lock: f.Lock, now: time.Now()}
	p.Claims = panel(ctx, perPage, func(ctx context.Context, n int) ([]lockrepo.Tenure, error) {
		f.Limit = n
		claims, err := u.cfg.Locks.StaleClaims(ctx, f)
		p.err = inputOf(err)
		return claims, err
	})
	if p.Claims.More {
		p.Next = p.Claims.Rows[len(p.Claims.Rows)-1].Cursor()
	}
	return p
}

// inputOf is the error if it is about what was asked for, not about the database.
func inputOf(err error) error {
	if errors.Is(err, lockrepo.ErrInput) {
		return err
	}
	return nil
}

// untaken reports a claim after which nobody has taken the lock.
func untaken(t lockrepo.Tenure) bool { return t.Successor == nil }
