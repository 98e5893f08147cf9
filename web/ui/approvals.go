package ui

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"pawl/lockrepo"
	"pawl/lockrepo/approvals"
	"pawl/lockrepo/keys"
)

// recordRoutes are the lists of what people asked for and did, and of keys.
func recordRoutes() []Route {
	return []Route{
		{Method: http.MethodGet, Pattern: "/ui/approvals", Role: keys.Reader, serve: (*UI).approvals},
		{Method: http.MethodGet, Pattern: "/ui/approvals/{id}", Role: keys.Reader, serve: (*UI).approval},
		{Method: http.MethodPost, Pattern: "/ui/approvals/{id}", Role: keys.Reader, Acts: true, Decides: true, serve: (*UI).decide},
		{Method: http.MethodGet, Pattern: "/ui/audit", Role: keys.Reader, serve: (*UI).audit},
		{Method: http.MethodGet, Pattern: "/ui/audit.csv", Role: keys.Reader, serve: (*UI).auditCSV},
		{Method: http.MethodGet, Pattern: "/ui/keys", Role: keys.Operator, serve: (*UI).keys},
	}
}

// approvalsPage is the list of what was asked for, the newest first.
type approvalsPage struct {
	All      bool
	Next     string
	Requests Panel[approvals.Request]
}

func (u *UI) approvals(q *request) error {
	if u.cfg.Approvals == nil {
		return notFound("There are no requests here.")
	}
	query := q.r.URL.Query()
	f := approvals.Filter{State: approvals.Pending}
	switch query.Get("state") {
	case "", approvals.Pending:
	case "all":
		f.State = ""
	default:
		return &RefusedError{Status: 422, Title: "Not understood", Detail: "The state " + query.Get("state") + " does not exist: choose pending or all."}
	}
	var ok bool
	if f.Before, ok = place(query.Get("before")); !ok {
		return badPlace()
	}
	data := share(q.r.Context(), u.shared, "approvals?"+query.Encode(), func(ctx context.Context) approvalsPage {
		p := approvalsPage{All: f.State == ""}
		p.Requests = panel(ctx, perPage, func(ctx context.Context, n int) ([]approvals.Request, error) {
			f.Limit = n
			return u.cfg.Approvals.List(ctx, f)
		})
		if p.Requests.More {
			p.Next = strconv.FormatInt(p.Requests.Rows[len(p.Requests.Rows)-1].ID, 10)
		}
		return p
	})
	return u.render(q, view{Name: "approvals", Title: "Approvals", Nav: "approvals", Data: data})
}

// place reads where a list goes on; empty is its beginning.
func place(text string) (int64, bool) {
	if text == "" {
		return 0, true
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && n > 0
}

func badPlace() error {
	return &RefusedError{Status: 422, Title: "Not understood", Detail: "The list doesn’t go on there: begin it anew."}
}

// approvalPage is one request, as one person sees it.
type approvalPage struct {
	approvals.Request
	Lease  lockrepo.Info // of its lock, as it is now; only while the request waits
	Own    bool          // the person has asked for it
	Single bool          // who asks may approve
	May    bool          // the person may approve it
	Back   bool          // the person may take it back
	No     bool          // the person may decline it
	Note   string
	Err    string
}

// Waiting tells that it may be decided.
func (a approvalPage) Waiting() bool { return a.State == approvals.Pending }

func (u *UI) approvalPage(ctx context.Context, q *request) (a approvalPage, err error) {
	if u.cfg.Approvals == nil {
		return a, notFound("There are no requests here.")
	}
	id, ok := place(q.args["id"])
	if !ok || id == 0 {
		return a, notFound("There is no request of that number.")
	}
	ctx, cancel := context.WithTimeout(ctx, panelTimeout)
	defer cancel()
	if a.Request, err = u.cfg.Approvals.Get(ctx, id); err != nil {
		return a, err
	}
	if a.Single, err = u.cfg.Approvals.SingleOperator(ctx); err != nil {
		return a, err
	}
	a.Own = a.RequestedByID == q.user.ID
	if a.Waiting() {
		if a.Lease, err = u.cfg.Locks.Show(ctx, a.Lock); err != nil && !errors.Is(err, lockrepo.ErrNotFound) {
			return a, err
		}
	}
	if a.Waiting() && !u.cfg.ReadOnly {
		a.May = q.user.Approver && (!a.Own || a.Single)
		a.No = q.user.Approver && !a.Own
		a.Back = a.Own && (q.user.Approver || q.user.may(keys.Operator))
	}
	return a, nil
}

// askedOf are the requests that wait for a decision about one lock.
func (u *UI) askedOf(ctx context.Context, lock string) ([]approvals.Request, error) {
	if u.cfg.Approvals == nil {
		return nil, nil
	}
	all, err := u.cfg.Approvals.List(ctx, approvals.Filter{State: approvals.Pending, Limit: perPage})
	return slices.DeleteFunc(all, func(r approvals.Request) bool { return r.Lock != lock || r.State != approvals.Pending }), err
}

// toDecide is what waits for approvers, whoever they are.
type toDecide struct {
	asked  []string // who asks, by id
	single bool     // who asks may approve
}

const (
	mostCounted  = 99
	countTimeout = 500 * time.Millisecond // the page is there without it
)

// waiting is how many requests the user may approve, for the bar. Empty: none, or it isn't known now.
func (u *UI) waiting(q *request) string {
	if u.cfg.Approvals == nil || u.cfg.ReadOnly || !q.user.Approver {
		return ""
	}
	all := share(q.r.Context(), u.shared, "to decide", func(ctx context.Context) (w toDecide) {
		ctx, cancel := context.WithTimeout(ctx, countTimeout)
		defer cancel()
		list, err := u.cfg.Approvals.List(ctx, approvals.Filter{State: approvals.Pending, Limit: mostCounted + 1})
		if err != nil || len(list) == 0 {
			return w
		}
		if w.single, err = u.cfg.Approvals.SingleOperator(ctx); err != nil {
			return w
		}
		for _, r := range list {
			if r.State == approvals.Pending {
				w.asked = append(w.asked, r.RequestedByID)
			}
		}
		return w
	})
	n := 0
	for _, by := range all.asked {
		if all.single || by != q.user.ID {
			n++
		}
	}
	switch {
	case n == 0:
		return ""
	case n > mostCounted:
		return strconv.Itoa(mostCounted) + "+"
	}
	return strconv.Itoa(n)
}

// approval shows one request. A page with a field to write in isn't renewed.
func (u *UI) approval(q *request) error {
	a, err := u.approvalPage(q.r.Context(), q)
	if err != nil {
		return err
	}
	v := view{Name: "approval", Title: "Request " + strconv.FormatInt(a.ID, 10), Nav: "approvals", Data: a}
	if a.May || a.No {
		u.show(q.r.Context(), q, http.StatusOK, v)
		return nil
	}
	return u.render(q, v)
}

// decide approves, declines or takes back.
func (u *UI) decide(q *request) error {
	if err := q.form(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(q.r.Context(), actTimeout)
	defer cancel()
	a, err := u.approvalPage(ctx, q)
	if err != nil {
		return err
	}
	approve, note := false, strings.TrimSpace(q.r.PostForm.Get("note"))
	switch q.r.PostForm.Get("decision") {
	case "approve":
		approve = true
	case "decline":
	case "withdraw":
		note = firstOf(note, "Taken back by who has asked.")
	default:
		return badForm()
	}
	switch { // with a sentence, before the database says the same
	case approve && a.Own && !a.Single:
		return approvals.ErrSamePerson
	case !approve && note == "":
		a.Err = "Say why you decline it, for who has asked."
	case len([]rune(note)) > mostReason:
		a.Err, a.Note = "The note has more than 2,000 characters: shorten it.", note
	}
	if a.Err != "" {
		u.show(ctx, q, http.StatusUnprocessableEntity, view{Name: "approval", Title: "Request " + strconv.FormatInt(a.ID, 10), Nav: "approvals", Data: a})
		return nil
	}
	decided, err := u.cfg.Acts.Decide(ctx, a.ID, q.person(), approve, note)
	if err != nil && decided.State == approvals.Approved && !errors.Is(err, approvals.ErrDecided) { // it is released; terminating the rest failed
		u.cfg.Logger.WarnContext(ctx, "ui: after a release by force", "lock", decided.Lock, "error", err)
		err = nil
	}
	if err != nil {
		return notDecided(a, err)
	}
	return u.to(q, addr("ui", "approvals", strconv.FormatInt(a.ID, 10)))
}

// notDecided says that the lease has ended meanwhile, where it has.
func notDecided(a approvalPage, err error) error {
	if e := refusalOf(err); e.Status == http.StatusConflict {
		return stale(e.Detail+" Nothing was released.", addr("ui", "approvals", strconv.FormatInt(a.ID, 10)), "Request "+strconv.FormatInt(a.ID, 10))
	}
	return err
}

// Left is the share of a request's time that is left, in percent.
func (a approvalPage) Valid() time.Duration { return a.ExpiresAt.Sub(a.RequestedAt) }
