package ui

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"pawl/lockrepo/keys"
)

// keysPage is all keys, those that may be used first.
type keysPage struct {
	Keys Panel[keys.Key]
	Now  time.Time
	Next string // the place after which the next page begins; empty: this is the last
}

// Ended tells that a key isn't taken any more.
func (p keysPage) Ended(k keys.Key) bool {
	return k.RevokedAt != nil || k.ExpiresAt != nil && !k.ExpiresAt.After(p.Now)
}

// place is where a key stands in the list: its name is unique.
func (p keysPage) place(k keys.Key) string { return pick(p.Ended(k), "1", "0") + k.Name }

func (u *UI) keys(q *request) error {
	if u.cfg.Keys == nil {
		return notFound("There are no keys here.")
	}
	after := q.r.URL.Query().Get("after")
	data := share(q.r.Context(), u.shared, "keys?"+after, func(ctx context.Context) keysPage {
		p := keysPage{Now: time.Now().UTC().Truncate(time.Minute)}
		p.Keys = panel(ctx, perPage, func(ctx context.Context, _ int) ([]keys.Key, error) {
			all, err := u.cfg.Keys.List(ctx)
			all = slices.DeleteFunc(all, func(k keys.Key) bool { return p.place(k) <= after })
			slices.SortFunc(all, func(a, b keys.Key) int { return strings.Compare(p.place(a), p.place(b)) })
			return all, err
		})
		if p.Keys.More {
			p.Next = p.place(p.Keys.Rows[len(p.Keys.Rows)-1])
		}
		return p
	})
	return u.render(q, view{Name: "keys", Title: "Keys", Nav: "keys", Data: data})
}

// keyForm is what the form of a new key offers.
type keyForm struct {
	Roles    []string
	Approver bool // who makes it may give the right to approve
	First    bool // no key was ever made
}

// createKey makes a key. The answer to the form is the only place where its secret is ever shown.
func (u *UI) createKey(q *request) error {
	var bearer string
	var made keys.Key
	err := u.act(q, func(ctx context.Context) (*actPage, error) {
		if u.cfg.Keys == nil {
			return nil, notFound("There are no keys here.")
		}
		all, err := u.cfg.Keys.List(ctx)
		if err != nil {
			return nil, err
		}
		f := keyForm{Roles: []string{keys.Reader, keys.Worker, keys.Operator}, Approver: q.user.Approver, First: len(all) == 0}
		a := &actPage{
			Title: "Make a key", Button: "Make the key", Fields: "key-fields", Data: f, Crumbs: []crumb{{"/ui/keys", "Keys"}}, Back: crumb{"/ui/keys", "Make none"},
			Steps: []string{"The key is shown once, in the answer to this form, and kept nowhere: put it where it is used at once."},
		}
		if f.First {
			a.Steps = append(a.Steps, "It is the first key: from then on nobody is answered without one, neither here nor by the lock API. Make it an operator’s, to be able to come back.")
		}
		return a, nil
	}, func(ctx context.Context) (_ string, err error) {
		k, err := q.newKey()
		if err != nil {
			return "", err
		}
		bearer, made, err = u.cfg.Acts.CreateKey(ctx, k)
		switch {
		case errors.Is(err, keys.ErrNameTaken):
			return "", &fieldError{"name", "There is a key of that name, or there was: names are never used again. Choose another."}
		case err != nil && isInput(err):
			return "", &fieldError{"name", sentence(err.Error())}
		case err != nil:
			return "", err
		}
		return "", errShown
	})
	if !errors.Is(err, errShown) {
		return err
	}
	u.show(q.r.Context(), q, http.StatusOK, view{Name: "key-made", Title: "Key " + made.Name, Nav: "keys", Data: struct {
		keys.Key
		Bearer string
	}{made, bearer}})
	return nil
}

// errShown says that the answer to a form is a page of its own.
var errShown = errors.New("ui: the answer is a page")

// isInput tells an error of what was given, which package keys says in a sentence, from the database's.
func isInput(err error) bool {
	return strings.HasPrefix(err.Error(), "keys: create: ")
}

// newKey reads the form of a new key.
func (q *request) newKey() (k keys.Key, err error) {
	form := q.r.PostForm
	k = keys.Key{
		Name: strings.TrimSpace(form.Get("name")), Role: form.Get("role"), Prefix: form.Get("prefix"), Approver: form.Get("approver") == "yes", CreatedBy: q.user.Name,
	}
	switch {
	case k.Name == "":
		return k, &fieldError{"name", "Name the key after who or what will use it, such as settlement-worker."}
	case !slices.Contains([]string{keys.Reader, keys.Worker, keys.Operator}, k.Role):
		return k, &fieldError{"role", "Choose what the key may do."}
	case k.Approver && !q.user.Approver: // an operator would give themselves what they haven't got
		return k, &fieldError{"approver", "You may not approve, so you can’t make a key that may: ask somebody who does, or use pawl key create."}
	}
	if text := form.Get("expires"); text != "" {
		t, ok := readTime(text, zoneOf(q.r))
		if !ok || !t.After(time.Now()) {
			return k, &fieldError{"expires", "Give a time that is still to come, such as 2027-01-31 00:00, or leave it empty."}
		}
		k.ExpiresAt = &t
	}
	return k, nil
}

// revokeKey ends a key for good.
func (u *UI) revokeKey(q *request) error {
	id := q.args["id"]
	return u.act(q, func(ctx context.Context) (*actPage, error) {
		k, err := u.key(ctx, id)
		if err != nil {
			return nil, err
		}
		a := &actPage{
			Title: "Revoke ", Of: "key " + k.Name, Button: "Revoke key " + k.Name, Danger: true, Crumbs: []crumb{{"/ui/keys", "Keys"}}, Back: crumb{"/ui/keys", "Keep it"},
			Steps: []string{"Whoever uses it is refused within a second, for good. Leases that it holds run out when they aren’t renewed."},
			Facts: []fact{{Name: "Name", Value: k.Name}, {Name: "Role", Value: k.Role + pick(k.Approver, ", may approve", "")}, {Name: "Made", At: &k.CreatedAt, Value: "by " + k.CreatedBy}},
		}
		if k.ID == q.user.ID {
			a.Steps = append(a.Steps, "It is the key that you have signed in with: you are signed out.")
		}
		if k.LastUsedAt != nil {
			a.Facts = append(a.Facts, fact{Name: "Last used", At: k.LastUsedAt})
		}
		return a, nil
	}, func(ctx context.Context) (string, error) {
		if _, err := u.key(ctx, id); err != nil {
			return "", err
		}
		_, err := u.cfg.Acts.RevokeKey(ctx, id, q.user.Name)
		return "/ui/keys", err
	})
}

// key is one that isn't revoked.
func (u *UI) key(ctx context.Context, id string) (keys.Key, error) {
	if u.cfg.Keys == nil {
		return keys.Key{}, keys.ErrNotFound
	}
	all, err := u.cfg.Keys.List(ctx)
	if err != nil {
		return keys.Key{}, err
	}
	i := slices.IndexFunc(all, func(k keys.Key) bool { return k.ID == id })
	switch {
	case i < 0:
		return keys.Key{}, keys.ErrNotFound
	case all[i].RevokedAt != nil:
		return keys.Key{}, stale("Somebody has revoked it already.", "/ui/keys", "All keys")
	}
	return all[i], nil
}
