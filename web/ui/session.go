package ui

import (
	"net/http"
	"strings"
	"time"
)

type signInPage struct {
	Next string
	Err  string
}

func (u *UI) signInForm(q *request) error {
	if u.cfg.SignIn == nil {
		return notFound("Nobody signs in here.")
	}
	u.show(q.r.Context(), q, http.StatusOK, view{Name: "sign-in", Title: "Sign in", Data: signInPage{Next: u.local(q.r.URL.Query().Get("next"))}})
	return nil
}

// signIn puts a key that is right into a cookie that no script can read and no other site sends.
func (u *UI) signIn(q *request) error {
	if u.cfg.SignIn == nil {
		return notFound("Nobody signs in here.")
	}
	if err := q.form(); err != nil {
		return err
	}
	next := u.local(q.r.PostForm.Get("next"))
	cookie, err := u.cfg.SignIn(q.r, strings.TrimSpace(q.r.PostForm.Get("key")))
	if err != nil {
		e := refusalOf(err)
		u.show(q.r.Context(), q, e.Status, view{Name: "sign-in", Title: "Sign in", Data: signInPage{Next: next, Err: e.Detail}})
		return nil
	}
	http.SetCookie(q.w, cookie)
	http.Redirect(q.w, q.r, next, http.StatusSeeOther)
	return nil
}

func (u *UI) signOut(q *request) error {
	if u.cfg.SignOut != nil {
		http.SetCookie(q.w, u.cfg.SignOut(q.r))
	}
	return u.to(q, "/ui/sign-in")
}

// local is an address below the base; anything else would lead people elsewhere.
func (u *UI) local(next string) string {
	home := u.cfg.BasePath + "/"
	if !strings.HasPrefix(next, home) || strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\\r\n\t") {
		return home
	}
	return next
}

const (
	themeCookie = "pawl_theme"
	zoneCookie  = "pawl_zone"
	prefsFor    = 365 * 24 * time.Hour
)

func (u *UI) setTheme(q *request) error {
	return u.prefer(q, themeCookie, func(v string) bool { return v == "light" || v == "dark" || v == "" })
}

func (u *UI) setZone(q *request) error {
	return u.prefer(q, zoneCookie, func(v string) bool { _, ok := zone(v); return ok })
}

// prefer keeps what the reader chose in their browser, and leads back to where they chose it.
func (u *UI) prefer(q *request, cookie string, is func(string) bool) error {
	if err := q.form(); err != nil {
		return err
	}
	value := q.r.PostForm.Get("value")
	if !is(value) {
		return &RefusedError{Status: http.StatusUnprocessableEntity, Title: "Not understood", Detail: "That is neither a theme nor an IANA time zone such as Europe/Berlin."}
	}
	http.SetCookie(q.w, &http.Cookie{
		Name: cookie, Value: value, Path: u.cfg.BasePath + "/", MaxAge: int(prefsFor.Seconds()), HttpOnly: true,
		SameSite: http.SameSiteLaxMode, Secure: q.r.TLS != nil,
	})
	http.Redirect(q.w, q.r, u.local(q.r.PostForm.Get("back")), http.StatusSeeOther)
	return nil
}

func themeOf(r *http.Request) string {
	if c, err := r.Cookie(themeCookie); err == nil && (c.Value == "light" || c.Value == "dark") {
		return c.Value
	}
	return ""
}

func zoneOf(r *http.Request) *time.Location {
	if c, err := r.Cookie(zoneCookie); err == nil {
		if z, ok := zone(c.Value); ok {
			return z
		}
	}
	return time.UTC
}
