package ui

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"pawl/lockrepo"
)

// auditPage is what people did, the newest first.
type auditPage struct {
	Filter  lockrepo.AuditFilter
	From    string // as the field shows it, in the reader's zone
	To      string
	Actions []string // to choose from
	Entries Panel[lockrepo.AuditEntry]
	Next    string
	CSV     string // the address of the same list as a file, below the base
}

// Any tells that something is chosen.
func (a auditPage) Any() bool {
	f := a.Filter
	return f.Actor != "" || f.Action != "" || f.Lock != "" || f.Job != "" || a.From != "" || a.To != ""
}

func (u *UI) audit(q *request) error {
	query, zone := q.r.URL.Query(), zoneOf(q.r)
	f, err := auditFilter(query, zone)
	if err != nil {
		return err
	}
	data := share(q.r.Context(), u.shared, "audit/"+zone.String()+"?"+query.Encode(), func(ctx context.Context) auditPage {
		return u.readAudit(ctx, f, zone)
	})
	return u.render(q, view{Name: "audit", Title: "Audit", Nav: "audit", Data: data})
}

func (u *UI) readAudit(ctx context.Context, f lockrepo.AuditFilter, zone *time.Location) auditPage {
	p := auditPage{Filter: f, From: fieldTime(f.From, zone), To: fieldTime(f.To, zone)}
	together(
		func() { // the field is there without them too
			actions := panel(ctx, perPage, func(ctx context.Context, _ int) ([]string, error) { return u.cfg.Locks.AuditActions(ctx) })
			p.Actions = actions.Rows
		},
		func() {
			p.Entries = panel(ctx, perPage, func(ctx context.Context, n int) ([]lockrepo.AuditEntry, error) {
				f.Limit = n
				return u.cfg.Locks.Audit(ctx, f)
			})
		},
	)
	if f.Action != "" && !slices.Contains(p.Actions, f.Action) {
		p.Actions = append(p.Actions, f.Action)
	}
	if p.Entries.More {
		p.Next = strconv.FormatInt(p.Entries.Rows[len(p.Entries.Rows)-1].ID, 10)
	}
	p.CSV = "/ui/audit.csv"
	if query := p.query().Encode(); query != "" {
		p.CSV += "?" + query
	}
	return p
}

func (a auditPage) query() url.Values {
	v := url.Values{}
	for name, value := range map[string]string{
		"actor": a.Filter.Actor, "action": a.Filter.Action, "lock": a.Filter.Lock, "job": a.Filter.Job, "from": a.From, "to": a.To,
	} {
		if value != "" {
			v.Set(name, value)
		}
	}
	return v
}

// auditFilter reads the query of the list and of the file. Times are in the reader's zone.
func auditFilter(query url.Values, zone *time.Location) (f lockrepo.AuditFilter, err error) {
	f = lockrepo.AuditFilter{Actor: query.Get("actor"), Action: query.Get("action"), Lock: query.Get("lock"), Job: query.Get("job")}
	var ok bool
	if f.Before, ok = place(query.Get("before")); !ok {
		return f, badPlace()
	}
	for name, at := range map[string]*time.Time{"from": &f.From, "to": &f.To} {
		text := query.Get(name)
		if text == "" {
			continue
		}
		if *at, ok = readTime(text, zone); !ok {
			return f, &RefusedError{Status: 422, Title: "Not understood", Detail: "The time " + text + " is none: give one such as 2026-09-17 06:00."}
		}
	}
	return f, nil
}

// readTime reads a time as a field sends it, or as people write it, in the reader's zone.
func readTime(text string, zone *time.Location) (time.Time, bool) {
	for _, layout := range []string{"2006-01-02T15:04", "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02 15:04:05", time.DateOnly} {
		if t, err := time.ParseInLocation(layout, strings.TrimSpace(text), zone); err == nil {
			return t.UTC(), true
		}
	}
	t, err := time.Parse(time.RFC3339Nano, strings.TrimSpace(text))
	return t.UTC(), err == nil
}

// fieldTime is a time as a field takes it, so that sending it again changes nothing.
func fieldTime(t time.Time, zone *time.Location) string {
	switch {
	case t.IsZero():
		return ""
	case t.Second() == 0 && t.Nanosecond() == 0:
		return t.In(zone).Format("2006-01-02T15:04")
	}
	return t.In(zone).Format("2006-01-02T15:04:05.999")
}

// named is what an entry that is about no lock and no job is about, as its detail says: a key.
func named(detail json.RawMessage) string {
	var of struct{ Name string }
	if json.Unmarshal(detail, &of) != nil {
		return ""
	}
	return of.Name
}

// The parts of an entry's detail that hold what runs are given, and what others have answered them.
const (
	given    = "params"
	answered = "response"
)

// public is an entry's detail as a user may read it.
func public(user User, detail json.RawMessage) json.RawMessage {
	var all map[string]json.RawMessage
	if user.Payloads() || json.Unmarshal(detail, &all) != nil || all[given] == nil && all[answered] == nil {
		return detail
	}
	delete(all, given)
	delete(all, answered)
	b, _ := json.Marshal(all) // it came from JSON
	return b
}

// facts are the parts of an entry's detail that a user may read, by name, in words.
func facts(user User, detail json.RawMessage) []pair {
	var all map[string]any
	detail = public(user, detail)
	if len(detail) == 0 || json.Unmarshal(detail, &all) != nil {
		return nil
	}
	out := make([]pair, 0, len(all))
	for name, value := range all {
		if text := said(value); text != "" {
			out = append(out, pair{strings.ReplaceAll(name, "_", " "), text})
		}
	}
	slices.SortFunc(out, func(a, b pair) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// said is a value of a detail in words; nothing for what isn't there.
func said(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return v
	case bool:
		return pick(v, "yes", "no")
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	b, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(b)
}
