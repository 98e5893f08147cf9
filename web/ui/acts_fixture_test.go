package ui_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/internal/pgtest"
	"pawl/jobs"
	"pawl/lockrepo/approvals"
	"pawl/lockrepo/keys"
	"pawl/web"
)

// staffed is a page with people: each has a key.
type staffed struct {
	*httptest.Server
	pool   *pgxpool.Pool
	store  *keys.Store
	bearer map[string]string // by name
}

// The people: ann asks, bob approves, eve only looks.
func staff(t *testing.T, sql string, change func(*web.Config)) *staffed {
	t.Helper()
	pool := pgtest.New(t)
	if _, err := pool.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
	s := &staffed{pool: pool, store: keys.New(pool), bearer: map[string]string{}}
	for _, k := range []keys.Key{
		{Name: "ann", Role: keys.Operator},
		{Name: "bob", Role: keys.Operator, Approver: true},
		{Name: "cas", Role: keys.Operator, Approver: true},
		{Name: "eve", Role: keys.Reader},
	} {
		k.CreatedBy = "test"
		bearer, _, err := s.store.Create(t.Context(), k)
		if err != nil {
			t.Fatal(err)
		}
		s.bearer[k.Name] = bearer
	}
	s.Server = on(t, pool, func(c *web.Config) {
		c.Keys, c.Acts, c.Approvals = s.store, web.NewActs(jobs.NewOperator(pool), approvals.New(pool, nil), s.store), approvals.New(pool, nil)
		if change != nil {
			change(c)
		}
	})
	return s
}

// get asks for a page as somebody.
func (s *staffed) get(t *testing.T, who, path string) reply {
	t.Helper()
	return send(t, http.MethodGet, s.URL+path, "Cookie", "pawl_key="+s.bearer[who])
}

// post sends a form as somebody, as a browser does from the same page.
func (s *staffed) post(t *testing.T, who, path string, form url.Values, header ...string) reply {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+path, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if who != "" {
		req.Header.Set("Cookie", "pawl_key="+s.bearer[who])
	}
	for i := 0; i+1 < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
		}
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{res.StatusCode, res.Header, string(b)}
}

var hiddenField = regexp.MustCompile(`<input type="hidden" name="([^"]+)" value="([^"]*)">`)

// form is the form of a page with what it was made for, and fields that a person fills in.
func (s *staffed) form(t *testing.T, who, path string, fields ...string) url.Values {
	t.Helper()
	page := s.get(t, who, path)
	page.is(t, http.StatusOK)
	form := url.Values{}
	_, main, _ := strings.Cut(page.body, "<main")
	main, _, _ = strings.Cut(main, "</main>")
	for _, m := range hiddenField.FindAllStringSubmatch(main, -1) {
		form.Add(m[1], strings.NewReplacer("&#43;", "+", "&#34;", `"`, "&#39;", "'", "&lt;", "<", "&gt;", ">", "&amp;", "&").Replace(m[2]))
	}
	for i := 0; i+1 < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	return form
}

// is fails the test at another status.
func (r reply) is(t *testing.T, status int) {
	t.Helper()
	if r.status != status {
		t.Fatalf("status %d, want %d: %s", r.status, status, text(r.body))
	}
}

// goes fails the test unless the answer leads there.
func (r reply) goes(t *testing.T, to string) {
	t.Helper()
	r.is(t, http.StatusSeeOther)
	if got := r.header.Get("Location"); got != to {
		t.Errorf("it leads to %s, want %s", got, to)
	}
}

var tags = regexp.MustCompile(`(?s)<head>.*</head>|<header.*?</header>|<[^>]*>|\s+`)

func text(body string) string { return strings.TrimSpace(tags.ReplaceAllString(body, " ")) }

// one is a value of the database, as text.
func one(t *testing.T, pool *pgxpool.Pool, sql string) (value string) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), sql).Scan(&value); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return value
}
