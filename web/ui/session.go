package ui

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
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
	path, _, _ := strings.Cut(next, "?")
	if !strings.HasPrefix(path, home) || strings.Contains(path, "//") || strings.ContainsFunc(next, unsafe) || slices.ContainsFunc(strings.Split(path, "/"), dots) {
		return home
	}
	return next
}

// unsafe are characters that browsers take for a slash, or leave out.
func unsafe(r rune) bool { return r == '\\' || unicode.IsControl(r) }

// dots are segments that browsers resolve, also where they are percent-encoded.
func dots(segment string) bool {
	plain, err := url.PathUnescape(segment)
	return err != nil || plain == "." || plain == ".."
}

// OverTLS tells whether a browser sends a form from a page that came by HTTPS: to us, or to a proxy in front.
func OverTLS(r *http.Request) bool {
	return r.TLS != nil || strings.HasPrefix(r.Header.Get("Origin"), "https://")
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
		SameSite: http.SameSiteLaxMode, Secure: OverTLS(q.r),
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
