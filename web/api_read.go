package web

import (
	"encoding/base64"
	"math"
	"net/url"
	"strconv"
	"strings"

	"pawl/fence"
	"pawl/lockrepo"
)

// show answers a lock that is held; one that was released or has expired is not there.
func (a *api) show(c *call) error {
	if len(c.path.Faults) > 0 {
		return invalid(c.path.Faults)
	}
	i, err := a.cfg.API.Show(c.r.Context(), c.path.Resource)
	if err != nil {
		return err
	}
	if i.State != lockrepo.Held {
		return lockrepo.ErrNotFound
	}
	c.w.Header().Set("ETag", `"`+strconv.FormatInt(i.Token, 10)+`"`)
	c.json(one{lockOfInfo(i)})
	return nil
}

// list answers the locks under a prefix, and never those outside the key's.
func (a *api) list(c *call) error {
	query, faults, err := parseQuery(c.r.URL.RawQuery, "prefix", "state", "limit", "cursor")
	if err != nil {
		return err
	}
	f := lockrepo.Filter{Prefix: query.Get("prefix"), State: query.Get("state"), Limit: limitOf(query, &faults), After: cursorOf(query, &faults)}
	if why := badName(f.Prefix); f.Prefix != "" && why != "" {
		faults = append(faults, fault{"/prefix", "prefix " + why})
	}
	switch f.State {
	case "", lockrepo.Held, lockrepo.Stale, lockrepo.Free:
	default:
		faults = append(faults, fault{"/state", "state is none of held, stale and free: use one of them, or leave it out for all."})
	}
	if len(faults) > 0 {
		return invalid(faults)
	}
	page := locks{Locks: []listed{}}
	switch {
	case strings.HasPrefix(f.Prefix, c.key.Prefix):
	case strings.HasPrefix(c.key.Prefix, f.Prefix):
		f.Prefix = c.key.Prefix
	default: // nothing is under both
		c.json(page)
		return nil
	}
	all, err := a.cfg.API.List(c.r.Context(), f)
	if err != nil {
		return err
	}
	for _, i := range all {
		page.Locks = append(page.Locks, listed{lockOfInfo(i), i.State})
	}
	if len(all) == f.Limit {
		next := base64.RawURLEncoding.EncodeToString([]byte(all[len(all)-1].Lock))
		page.Next = &next
	}
	c.json(page)
	return nil
}

// history answers the ended leases of a lock that has ever been.
func (a *api) history(c *call) error {
	query, faults, err := parseQuery(c.r.URL.RawQuery, "limit", "cursor")
	if err != nil {
		return err
	}
	limit, before := limitOf(query, &faults), int64(0)
	if query.Has("cursor") {
		if before, err = strconv.ParseInt(query.Get("cursor"), 10, 64); err != nil || before < 1 {
			faults = append(faults, fault{"/cursor", "cursor is none of ours: send the next_cursor of the page before."})
		}
	}
	if faults = append(c.path.Faults, faults...); len(faults) > 0 {
		return invalid(faults)
	}
	all, err := a.cfg.API.History(c.r.Context(), c.path.Resource, limit, before)
	if err != nil {
		return err
	}
	if len(all) == 0 { // never, or not yet
		if _, err := a.cfg.API.Show(c.r.Context(), c.path.Resource); err != nil {
			return err
		}
	}
	page := tenures{Resource: c.path.Resource, Tenures: []tenure{}}
	for _, t := range all {
		page.Tenures = append(page.Tenures, tenureOf(t))
	}
	if len(all) == limit {
		next := strconv.FormatInt(all[len(all)-1].Token, 10)
		page.Next = &next
	}
	c.json(page)
	return nil
}

// check tells whether a target would still take a token.
func (a *api) check(c *call) error {
	body, err := c.body(true)
	if err != nil {
		return err
	}
	lock, token, faults, err := parseFence(body)
	if err != nil {
		return err
	}
	if faults = append(c.path.Faults, faults...); len(faults) > 0 {
		return invalid(faults)
	}
	if err := reaches(c.key, lock); err != nil {
		return err
	}
	current, last, err := a.cfg.API.CheckTarget(c.r.Context(), fence.Token{Lock: lock, Seq: token}, c.path.Resource)
	if err != nil {
		return err
	}
	if !current && c.key.Prefix != "" {
		if last, err = a.ownMark(c, lock, last); err != nil {
			return err
		}
	}
	if !current {
		return &problemError{
			kind: staleToken, detail: "This token must not write to this target any more: acquire the lock again.",
			more: map[string]any{"current": false, "last_token": last},
		}
	}
	c.json(checked{true, last})
	return nil
}

// ownMark is last, unless it is the token of another lock: the key may not reach that.
func (a *api) ownMark(c *call, lock string, last *int64) (*int64, error) {
	own, _, err := a.cfg.API.CheckTarget(c.r.Context(), fence.Token{Lock: lock, Seq: math.MaxInt64}, c.path.Resource)
	if own {
		return last, err
	}
	return nil, err
}

const defaultPage, mostOfAPage = 100, 1000

func limitOf(query url.Values, faults *[]fault) int {
	if !query.Has("limit") {
		return defaultPage
	}
	n, err := strconv.Atoi(query.Get("limit"))
	if err != nil || n < 1 || n > mostOfAPage {
		*faults = append(*faults, fault{"/limit", "limit must be an integer from 1 to 1000."})
		return defaultPage
	}
	return n
}

// cursorOf is the last name of the page before.
func cursorOf(query url.Values, faults *[]fault) string {
	if !query.Has("cursor") {
		return ""
	}
	name, err := base64.RawURLEncoding.DecodeString(query.Get("cursor"))
	if err != nil || badName(string(name)) != "" {
		*faults = append(*faults, fault{"/cursor", "cursor is none of ours: send the next_cursor of the page before."})
		return ""
	}
	return string(name)
}
