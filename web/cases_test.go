package web_test

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// httpCase is one of testdata/http.json: a request and the answer it must get.
type httpCase struct {
	Name, Group, Method, Path, Note string
	Headers                         map[string]string
	Setup                           [][3]string
	Body                            *string
	BodyBytes                       []byte    `json:"body_b64"`
	BodyGen                         *repeated `json:"body_gen"`
	Raw                             []byte    `json:"raw_b64"`
	RawGen                          *repeated `json:"raw_gen"`
	DripMS                          int       `json:"drip_ms"`
	MaxWaitMS                       int       `json:"max_wait_ms"`
	HalfClose                       bool      `json:"half_close"`
	Hangup                          bool      `json:"hangup"`
	Idle                            int       `json:"idle_conns"`
	Parallel                        int       `json:"parallel"`
	Precondition                    string
	Status                          int     `json:"expect_status"`
	Alt                             []int   `json:"alt_status"`
	Type                            *string `json:"expect_type"`
	Header                          string  `json:"expect_header"`
	Contains                        string  `json:"expect_body_contains"`
	ExactlyOne                      string  `json:"expect_exactly_one"`
}

type repeated struct {
	Prefix, Fill, Suffix string
	Count                int
}

func (g repeated) String() string { return g.Prefix + strings.Repeat(g.Fill, g.Count) + g.Suffix }

func (c *httpCase) body(i int) string {
	switch {
	case c.BodyGen != nil:
		return c.BodyGen.String()
	case c.BodyBytes != nil:
		return string(c.BodyBytes)
	case c.Body != nil:
		return strings.ReplaceAll(*c.Body, "{i}", strconv.Itoa(i))
	}
	return ""
}

func cases(t *testing.T) (all []httpCase) {
	t.Helper()
	decode(t, read(t, "testdata/http.json"), &all)
	if len(all) < 174 {
		t.Fatalf("%d cases, want 174 at least", len(all))
	}
	return all
}

func TestEveryCase(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	for _, c := range cases(t) {
		t.Run(c.Group+"/"+c.Name, func(t *testing.T) {
			t.Parallel()
			switch {
			case c.Precondition != "":
				c.failing(t)
			case c.Hangup:
				c.hangUp(t)
			case c.Method == "RAW":
				c.raw(t, a)
			case c.Parallel > 0:
				c.together(t, a)
			default:
				c.plain(t, a)
			}
		})
	}
}

// prepare sends what comes before the request.
func (c *httpCase) prepare(t *testing.T, a *lockAPI) {
	t.Helper()
	for _, s := range c.Setup {
		if s[0] == "SLEEP" {
			ms, err := strconv.Atoi(s[1])
			if err != nil {
				t.Fatal(err)
			}
			<-time.After(time.Duration(ms) * time.Millisecond) // real clock: a lease has to expire by the database's
			continue
		}
		if got := a.ask(t, s[0], s[1], s[2]); got.status >= 300 {
			t.Fatalf("setup %v = %d %s", s, got.status, got.body)
		}
	}
}

func (c *httpCase) plain(t *testing.T, a *lockAPI) {
	t.Helper()
	c.prepare(t, a)
	idle(t, a.addr, c.Idle)
	got := c.send(t, a, 0)
	c.judge(t, a, got)
	if taken := c.Method == http.MethodPost && len(c.Setup) == 0 && strings.HasPrefix(c.Path, "/locks/") && !strings.HasSuffix(c.Path, "/renew"); taken && got.status >= 400 {
		c.isFree(t, a, c.Path)
	}
}

func (c *httpCase) send(t *testing.T, a *lockAPI, i int) reply {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), c.Method, a.url+c.Path, strings.NewReader(c.body(i)))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range c.Headers {
		req.Header.Set(name, value)
	}
	return exchange(t, req)
}

// judge compares an answer with what the case expects of it, and with what holds for every answer.
func (c *httpCase) judge(t *testing.T, a *lockAPI, got reply) {
	t.Helper()
	if got.status != c.Status && !slices.Contains(c.Alt, got.status) {
		t.Fatalf("%s %.80s = %d %.300s, want %d (%s)", c.Method, c.Path, got.status, got.body, c.Status, c.Note)
	}
	media := got.header.Get("Content-Type")
	if c.Type != nil && media != *c.Type {
		t.Errorf("Content-Type = %q, want %q", media, *c.Type)
	}
	if c.Status == http.StatusNoContent && media != "" {
		t.Errorf("no content has the type %q", media)
	}
	if c.Header != "" && got.header.Get(c.Header) == "" {
		t.Errorf("no %s in %v", c.Header, got.header)
	}
	if !strings.Contains(got.body, c.Contains) {
		t.Errorf("answer = %s, want %s in it", got.body, c.Contains)
	}
	if id := got.header.Get("X-Request-Id"); id == "" && got.header.Get("Content-Security-Policy") != "" {
		t.Error("no X-Request-Id")
	}
	if strings.HasPrefix(media, "application/problem") && c.Method != http.MethodHead {
		c.judgeProblem(t, a, got)
	}
}

func (c *httpCase) judgeProblem(t *testing.T, a *lockAPI, got reply) {
	t.Helper()
	var doc struct {
		Type, Detail string
		Errors       []struct{ Pointer, Detail string }
	}
	decode(t, got.body, &doc)
	got.isProblem(t, got.status, doc.Type)
	for _, leak := range []string{"pgx", "SQLSTATE", "select ", "/tmp", ".go", "goroutine", "postgres"} {
		if strings.Contains(doc.Detail, leak) {
			t.Errorf("detail %q has %q", doc.Detail, leak)
		}
	}
	if got.status == http.StatusUnprocessableEntity && len(doc.Errors) == 0 {
		t.Errorf("no errors in %s", got.body)
	}
	if page := a.ask(t, http.MethodGet, doc.Type, ""); page.status != http.StatusOK {
		t.Errorf("%s = %d, want its page", doc.Type, page.status)
	}
}

// isFree fails the test if a request that was refused has taken the lock all the same.
func (c *httpCase) isFree(t *testing.T, a *lockAPI, path string) {
	t.Helper()
	if got := a.ask(t, http.MethodGet, path, ""); got.status == http.StatusOK && strings.Contains(got.body, `"lock":{`) {
		t.Errorf("the request was refused, and the lock is held: %s", got.body)
	}
}

// together sends the request many times at once.
func (c *httpCase) together(t *testing.T, a *lockAPI) {
	t.Helper()
	c.prepare(t, a)
	answers := make([]reply, c.Parallel)
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() { answers[i] = c.send(t, a, i) })
	}
	all.Wait()
	hits, tokens := 0, map[string]bool{}
	for _, got := range answers {
		c.judge(t, a, got)
		if c.ExactlyOne != "" && strings.Contains(got.body, c.ExactlyOne) {
			hits++
		}
		tokens[got.header.Get("Fencing-Token")] = true
	}
	if c.ExactlyOne != "" && hits != 1 {
		t.Errorf("%d of %d answers have %s, want 1", hits, c.Parallel, c.ExactlyOne)
	}
	if c.ExactlyOne == "" && (len(tokens) != 1 || tokens[""]) {
		t.Errorf("tokens %v, want one for all", tokens)
	}
}
