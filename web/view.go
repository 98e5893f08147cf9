package web

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"pawl/jobs"
	"pawl/lockrepo"
)

// shown is how many rows of history the page has; the JSON has more.
const shown = 20

// view is the page: a snapshot in the words that people read.
type view struct {
	Now      time.Time
	Base     string
	Static   string
	Version  string
	Insecure bool     // open, with no key ever made
	Keys     bool     // nobody is answered without one
	API      bool     // the lock API is served too
	Status   string   // read out when it changes: problems only
	Alone    bool     // no part was answered
	Alert    bool     // a stale claim that nobody has taken over
	Wrong    []string // of the job file
	Strip    []figure
	Stale    panel[staleRow]
	Holders  panel[holderRow]
	Refusals panel[refusalRow]
	Passed   panel[refusalRow] // shown when there are any
	Runs     panel[runRow]
}

// panel is a part of the page.
type panel[T any] struct {
	Rows []T
	Away string // why the database gave no answer; empty: it did
	Cut  bool   // there are more
	JSON string // where there are more of them; empty: nowhere
}

// figure is one number of the strip. Its class is empty, warn (watch it) or bad (act).
type figure struct{ Figure, What, Href, Class string }

func newView(n *snapshot, cfg Config, who signIn) *view {
	now := n.now()
	v := &view{
		Now: now, Base: cfg.BasePath, Static: cfg.BasePath + "/static/" + staticHash(), Version: cfg.Version,
		Insecure: cfg.Insecure && who.None, Keys: who.Needed, API: cfg.API != nil, Wrong: cfg.Wrong(),
		Stale:    show(n.Stale, cfg.BasePath, shown, viewClaim),
		Holders:  show(n.Holders, cfg.BasePath, most, func(l lockrepo.Info) holderRow { return viewHolder(now, l) }),
		Refusals: show(n.Refusals, cfg.BasePath, shown, viewRefusal),
		Passed:   show(n.Passed, cfg.BasePath, shown, viewRefusal),
		Runs:     show(n.Runs, cfg.BasePath, shown, viewRun),
	}
	slices.SortStableFunc(v.Holders.Rows, func(a, b holderRow) int {
		return cmp.Or(bool2int(b.Late)-bool2int(a.Late), strings.Compare(a.Lock, b.Lock))
	})
	v.Alone = n.away()
	v.Alert = slices.ContainsFunc(v.Stale.Rows, func(r staleRow) bool { return r.Successor == 0 })
	v.strip(n.Counts)
	return v
}

// show makes a panel of a part, with at most so many rows.
func show[T, R any](p part[T], base string, limit int, row func(T) R) panel[R] {
	out := panel[R]{Cut: p.More || len(p.Rows) > limit}
	if p.Err != nil {
		out.Away = reason(p.Err)
	}
	if len(p.Rows) > limit {
		out.JSON = base + "/api/overview"
	}
	for _, r := range p.Rows[:min(limit, len(p.Rows))] {
		out.Rows = append(out.Rows, row(r))
	}
	return out
}

// reason is why the database gave no answer, in the page's typography.
func reason(err error) string { return strings.ReplaceAll(lockrepo.Reason(err), "'", "’") }

// strip is the row of figures, and the sentence that says what is wrong in them.
func (v *view) strip(counts part[jobs.Counts]) {
	if counts.Err != nil {
		why := reason(counts.Err)
		v.Strip = []figure{{Figure: "?", What: "no figures: the database " + why, Href: "#main", Class: "warn"}}
		v.Status = "The database " + why + "."
		return
	}
	c := counts.Rows[0]
	late := count(v.Holders.Rows, func(h holderRow) bool { return h.Late })
	recent := count(v.Refusals.Rows, func(r refusalRow) bool { return v.Now.Sub(r.At) < time.Hour })
	v.Strip = []figure{
		{counted(c.Held), plural(c.Held, "lease held", "leases held"), "#holders", ""},
		{counted(late), plural(late, "late beat", "late beats"), "#holders", class(late > 0, "warn")},
		{counted(c.Stale), plural(c.Stale, "expired lease nobody took", "expired leases nobody took"), "#stale", class(c.Stale > 0, "bad")},
		{comma(c.Refusals), "refused writes, ever", "#refusals", class(recent > 0, "warn")},
		{counted(c.Running + c.Open), fmt.Sprintf("periods owed, %s running", counted(c.Running)), "#runs", ""},
		{counted(c.Dead + c.Missed), "periods dead or missed, 7" + nb + "days", "#runs", class(c.Dead+c.Missed > 0, "bad")},
	}
	v.Status = fmt.Sprintf("%s late, %s not taken over, %s dead or missed.", counted(late), counted(c.Stale), counted(c.Dead+c.Missed))
}

func count[T any](rows []T, is func(T) bool) int {
	n := 0
	for _, r := range rows {
		n += bool2int(is(r))
	}
	return n
}

func class(when bool, name string) string {
	if when {
		return name
	}
	return ""
}

func bool2int(b bool) int {
	if b {
		return 1
	}
	return 0
}
