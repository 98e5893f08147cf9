package ui

import (
	"context"
	"slices"
	"time"

	"pawl/lockrepo"
)

const perPage = 100

// locksPage is the list of all locks, by name.
type locksPage struct {
	Query, State string
	Next         string // the name after which the next page begins; empty: this is the last
	Locks        Panel[lockRow]
	now          time.Time
}

// States are the states that one may choose.
func (locksPage) States() []string { return []string{lockrepo.Held, lockrepo.Stale, lockrepo.Free} }

// lockRow is one lock. Which of two beats is missing only time tells: it is decided when the row is read.
type lockRow struct {
	lockrepo.Info
	Late bool // two beats are missing: a holder beats every third of its TTL
}

func rowOf(l lockrepo.Info) lockRow {
	return lockRow{Info: l, Late: l.State == lockrepo.Held && l.ExpiresAt.Sub(l.ReadAt) < l.TTL.Duration()/3}
}

func (u *UI) locks(q *request) error {
	query := q.r.URL.Query()
	f := lockrepo.Filter{Prefix: query.Get("q"), State: query.Get("state"), After: query.Get("after")}
	if !slices.Contains([]string{"", lockrepo.Held, lockrepo.Stale, lockrepo.Free}, f.State) {
		return &RefusedError{Status: 422, Title: "Not understood", Detail: "The state " + f.State + " does not exist: choose held, stale or free."}
	}
	data := share(q.r.Context(), u.shared, "locks?"+query.Encode(), func(ctx context.Context) locksPage { return u.readLocks(ctx, f) })
	return u.render(q, view{Name: "locks", Title: "Locks", Nav: "locks", Now: data.now, Data: data})
}

func (u *UI) readLocks(ctx context.Context, f lockrepo.Filter) locksPage {
	p := locksPage{Query: f.Prefix, State: f.State, now: time.Now()}
	p.Locks = panel(ctx, perPage, func(ctx context.Context, n int) ([]lockRow, error) {
		f.Limit = n
		infos, err := u.cfg.Locks.List(ctx, f)
		rows := make([]lockRow, len(infos))
		for i, l := range infos {
			rows[i] = rowOf(l)
			p.now = l.ReadAt
		}
		return rows, err
	})
	if p.Locks.More {
		p.Next = p.Locks.Rows[len(p.Locks.Rows)-1].Lock
	}
	return p
}
