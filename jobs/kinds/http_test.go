package kinds_test

import (
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/internal/pgtest"
	"pawl/jobs"
	"pawl/jobs/kinds"
)

// asked is a request that a receiver has had.
type asked struct {
	*http.Request
	body string
}

// receiver answers like answer, which is told how many requests there were before, and remembers the requests.
type receiver struct {
	*httptest.Server
	mu  sync.Mutex
	all []asked
}

func receive(t *testing.T, answer func(n int, w http.ResponseWriter, r *http.Request)) *receiver {
	t.Helper()
	x := &receiver{}
	x.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		x.mu.Lock()
		n := len(x.all)
		x.all = append(x.all, asked{r, string(b)})
		x.mu.Unlock()
		answer(n, w, r)
	}))
	t.Cleanup(func() {
		x.CloseClientConnections()
		x.Close()
	})
	return x
}

func (x *receiver) requests() []asked {
	x.mu.Lock()
	defer x.mu.Unlock()
	return append([]asked(nil), x.all...)
}

func ok(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }

// send runs the request once, with retries an hour later.
func send(t *testing.T, h kinds.HTTP, change ...func(*jobs.Job)) (ended, *pgxpool.Pool) {
	t.Helper()
	pool := pgtest.New(t)
	j := job(t, h)
	j.RetryDelay, j.RetryMaxDelay = time.Hour, 2*time.Hour
	for _, c := range change {
		c(&j)
	}
	start(t, jobs.Config{Pool: pool, Grace: time.Second}, j)
	return run(t, pool), pool
}

func TestARequestCarriesKeyTokenAndLock(t *testing.T) {
	t.Parallel()
	x := receive(t, func(_ int, w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "fine") })
	r, _ := send(t, kinds.HTTP{
		URL:     template(x.URL + "/a/{{params.path}}?k={{params.path}}"),
		Headers: map[string]kinds.Text{"Authorization": kinds.Plain("Bearer s"), "X-Day": template("{{period.key}}")},
		Body:    kinds.Body{JSON: map[string]any{"day": template("{{period.key}}"), "n": 1.5, "list": []any{template("{{run.attempt}}"), nil, true}}},
	}, func(j *jobs.Job) { j.Lock, j.Params = "a%b é", text("path", "x/+ y?&é") })
	if r.State != "complete" || r.text() != "200 OK\nfine" {
		t.Fatalf("%s %q %q", r.State, r.Error, r.text())
	}
	q := x.requests()[0]
	var body any
	if err := json.Unmarshal([]byte(q.body), &body); err != nil {
		t.Fatal(err)
	}
	if b, _ := json.Marshal(body); string(b) != `{"day":"`+r.Key+`","list":["1",null,true],"n":1.5}` {
		t.Errorf("%s", b)
	}
	for name, want := range map[string]string{
		"Idempotency-Key": "x:" + r.Key, "Fencing-Token": strconv.FormatInt(r.Token, 10), "Pawl-Lock": "a%25b %C3%A9", "Authorization": "Bearer s",
		"X-Day": r.Key, "Content-Type": "application/json", "User-Agent": "pawl",
	} {
		if got := q.Header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if q.Method != http.MethodPost || q.URL.EscapedPath() != "/a/x%2F%2B%20y%3F%26%C3%A9" || q.URL.Query().Get("k") != "x/+ y?&é" {
		t.Errorf("%s %s %s", q.Method, q.URL.EscapedPath(), q.URL.RawQuery)
	}
}

func TestAnswersSayWhatBecomesOfThePeriod(t *testing.T) {
	t.Parallel()
	status := func(code int) func(int, http.ResponseWriter, *http.Request) {
		return func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	says := func(text string) func(int, http.ResponseWriter, *http.Request) {
		return func(_ int, w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
	}
	want := func(v any) kinds.HTTP { return kinds.HTTP{Expect: kinds.Answer{Pointer: "/a~1b/1/ok", Equals: v}} }
	const dead = "dead failed"
	for name, c := range map[string]struct {
		h      kinds.HTTP
		answer func(int, http.ResponseWriter, *http.Request)
		period string
		words  string
	}{
		"created":           {kinds.HTTP{}, status(201), "complete", ""},
		"not the one":       {kinds.HTTP{Expect: kinds.Answer{Status: []int{200}}}, status(202), dead, "answered 202 Accepted"},
		"the one":           {kinds.HTTP{Expect: kinds.Answer{Status: []int{404}}}, status(404), "complete", ""},
		"refused":           {kinds.HTTP{}, status(422), dead, "jobs: no retry: POST: answered 422"},
		"server error":      {kinds.HTTP{}, status(500), dead, "answered 500"},
		"busy":              {kinds.HTTP{}, status(503), "open failed", "POST: answered 503 Service Unavailable"},
		"busy, not retried": {kinds.HTTP{RetryOn: []string{}}, status(503), dead, "answered 503"},
		"too long":          {kinds.HTTP{MaxResponse: 1024}, says(strings.Repeat("x", 1025)), dead, "more than 1024 bytes"},
		"just not too long": {kinds.HTTP{MaxResponse: 1024}, says(strings.Repeat("x", 1024)), "complete", ""},
		"value":             {want(true), says(`{"a/b": [1, {"ok": true}]}`), "complete", ""},
		"other value":       {want(true), says(`{"a/b": [1, {"ok": false}]}`), dead, "/a~1b/1/ok is false, expected true"},
		"number":            {want(1), says(`{"a/b": [1, {"ok": 1.0}]}`), "complete", ""},
		"other number":      {want(int64(9007199254740993)), says(`{"a/b": [1, {"ok": 9007199254740992}]}`), dead, "is 9007199254740992"},
		"object":            {want(map[string]any{"x": []any{"y", nil}}), says(`{"a/b": [1, {"ok": {"x":["y",null]}}]}`), "complete", ""},
		"no value":          {want(true), says(`{"a/b": [1]}`), dead, "has no /a~1b/1/ok"},
		"no JSON":           {want(true), says(`{"a/b": [1, {"ok": true}]} x`), dead, "is not JSON"},
		"huge number":       {want(1), says(`{"a/b": [1, {"ok": 1e999999999}]}`), dead, "expected 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := receive(t, c.answer)
			c.h.URL = kinds.Plain(x.URL)
			if r, _ := send(t, c.h); r.period != c.period || !strings.Contains(r.Error, c.words) || c.words == "" && r.Error != "" {
				t.Errorf("%s %q, period %s", r.State, r.Error, r.period)
			}
			if n := len(x.requests()); n != 1 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

func TestRedirectsStayOnTheirHost(t *testing.T) {
	t.Parallel()
	elsewhere := receive(t, ok)
	for name, c := range map[string]struct {
		method string
		code   int
		to     string
		period string
		asked  int
	}{
		"same host":               {http.MethodPost, 307, "/there", "complete", 2},
		"look at the result":      {http.MethodPost, 303, "/there", "complete", 2},
		"GET":                     {http.MethodGet, 301, "/there", "complete", 2},
		"POST would become a GET": {http.MethodPost, 302, "/there", "dead failed", 1},
		"another host":            {http.MethodPost, 307, elsewhere.URL, "dead failed", 1},
		"another port's name":     {http.MethodGet, 302, "http://localhost:1/", "dead failed", 1},
		"for ever":                {http.MethodGet, 302, "/", "dead failed", 6},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := receive(t, func(_ int, w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/there" {
					http.Redirect(w, r, c.to, c.code)
				}
			})
			r, _ := send(t, kinds.HTTP{Method: c.method, URL: kinds.Plain(x.URL + "/?secret=s3cret"), Headers: map[string]kinds.Text{"Authorization": kinds.Plain("s")}})
			if n := len(x.requests()); r.period != c.period || n != c.asked || strings.Contains(r.Error, "s3cret") {
				t.Errorf("%s %q, period %s, %d requests", r.State, r.Error, r.period, n)
			}
			if c.method == http.MethodPost && c.period == "complete" && x.requests()[1].Header.Get("Idempotency-Key") == "" {
				t.Error("the key was left behind")
			}
		})
	}
	t.Cleanup(func() {
		if n := len(elsewhere.requests()); n != 0 {
			t.Errorf("%d requests went elsewhere", n)
		}
	})
}

func TestRetryAfterIsHonoured(t *testing.T) {
	t.Parallel()
	fixed := func(s string) func() string { return func() string { return s } }
	for name, c := range map[string]struct {
		header func() string
		least  time.Duration
		most   time.Duration
	}{
		"seconds":  {fixed("7200"), 2 * time.Hour, 2*time.Hour + time.Minute},
		"a date":   {func() string { return time.Now().Add(3 * time.Hour).UTC().Format(http.TimeFormat) }, 3*time.Hour - 10*time.Second, 3*time.Hour + time.Minute},
		"bounded":  {fixed("2000000000"), 24 * time.Hour, 24*time.Hour + time.Minute},
		"no sense": {fixed("soon"), 0, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := receive(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", c.header())
				w.WriteHeader(http.StatusTooManyRequests)
			})
			_, pool := send(t, kinds.HTTP{URL: kinds.Plain(x.URL)}, func(j *jobs.Job) { j.RetryDelay, j.RetryMaxDelay = time.Second, time.Second })
			var ms int64
			if err := pool.QueryRow(t.Context(), `select (extract(epoch from p.not_before - r.ended_at) * 1000)::bigint from pawl.periods p, pawl.runs r`).Scan(&ms); err != nil {
				t.Fatal(err)
			}
			if d := time.Duration(ms) * time.Millisecond; d < c.least || d > c.most {
				t.Errorf("the next run is %v later", d)
			}
		})
	}
}

// hang answers nothing for as long as the request lives.
func hang(_ int, _ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

func TestNoAnswerIsWhatOnTimeoutSays(t *testing.T) {
	t.Parallel()
	cut := func(_ int, w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }
	half := func(_ int, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "half")
		panic(http.ErrAbortHandler)
	}
	for name, c := range map[string]struct {
		answer        func(int, http.ResponseWriter, *http.Request)
		on            string
		state, period string
	}{
		"uncertain":           {hang, "", "failed", "dead uncertain"},
		"retry":               {hang, kinds.TimeoutRetry, "timed_out", "open timed_out"},
		"error":               {hang, kinds.TimeoutError, "failed", "dead failed"},
		"cut off, uncertain":  {cut, kinds.TimeoutUncertain, "failed", "dead uncertain"},
		"cut off, retry":      {cut, kinds.TimeoutRetry, "failed", "open failed"},
		"half an answer":      {half, kinds.TimeoutUncertain, "failed", "dead uncertain"},
		"half an answer, too": {half, kinds.TimeoutRetry, "failed", "open failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := receive(t, c.answer)
			r, _ := send(t, kinds.HTTP{URL: kinds.Plain(x.URL), OnTimeout: c.on}, func(j *jobs.Job) { j.Timeout = time.Second })
			if r.State != c.state || r.period != c.period || len(x.requests()) != 1 || !strings.Contains(r.Error, "POST: sent, no answer: ") {
				t.Errorf("%s %q, period %s, %d requests", r.State, r.Error, r.period, len(x.requests()))
			}
		})
	}
}

func TestAShutdownLeavesAnUnansweredRequestUncertain(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	x := receive(t, hang)
	stop := start(t, jobs.Config{Pool: pool, Grace: 100 * time.Millisecond}, job(t, kinds.HTTP{URL: kinds.Plain(x.URL)}))
	pgtest.Eventually(t, 20*time.Second, "it was sent", func() bool { return len(x.requests()) == 1 })
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if r := run(t, pool); r.period != "dead uncertain" {
		t.Errorf("%s %q, period %s", r.State, r.Error, r.period)
	}
}

func TestWhatWasNotSentIsNotUncertain(t *testing.T) {
	t.Parallel()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	tls := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was sent") }))
	tls.Config.ErrorLog = log.New(io.Discard, "", 0)
	tls.StartTLS()
	t.Cleanup(tls.Close)
	for name, c := range map[string]struct {
		url    string
		on     []string
		period string
	}{
		"nobody listens":              {"http://" + addr, nil, "open failed"},
		"nobody listens, not retried": {"http://" + addr, []string{"503"}, "dead failed"},
		"unknown certificate":         {tls.URL, nil, "open failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _ := send(t, kinds.HTTP{URL: kinds.Plain(c.url + "/?secret=s3cret"), RetryOn: c.on})
			if r.period != c.period || !strings.Contains(r.Error, "not sent") || strings.Contains(r.Error, "s3cret") {
				t.Errorf("%s %q, period %s", r.State, r.Error, r.period)
			}
		})
	}
}

func TestTheKeyStaysUntilTheReceiverHasRefused(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	codes := []int{503, 409, 422, 503, 200}
	x := receive(t, func(n int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(codes[min(n, len(codes)-1)]) })
	j := job(t, kinds.HTTP{URL: kinds.Plain(x.URL)})
	j.RetryMaxDelay = time.Second
	start(t, jobs.Config{Pool: pool}, j)
	for n := range codes {
		until(t, pool, 1, `select count(*) from pawl.periods where ended_at is not null or $1 = 0 or $1 = 3`, n)
		pgtest.Eventually(t, 20*time.Second, "a request", func() bool { return len(x.requests()) > n })
		if n == 1 || n == 2 { // dead: a person tries again
			until(t, pool, 1, `select count(*) from pawl.periods where state = 'dead'`)
			reopen(t, pool)
		}
	}
	until(t, pool, 1, `select count(*) from pawl.periods where state = 'complete'`)
	var got []string
	for _, q := range x.requests() {
		got = append(got, q.Header.Get("Idempotency-Key"))
	}
	k := "x:" + runs(t, pool, 5)[0].Key
	if want := []string{k, k, k, k + ":try-2", k + ":try-2"}; strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("%q, want %q", got, want)
	}
}

// reopen makes the dead period open again, as an operator does.
func reopen(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{
		`select pawl.lane(array['job:x'])`, `update pawl.periods set state = 'open', ended_at = null, attempts = 0 where state = 'dead'`, `select pawl.leave(array['job:x'])`,
	} {
		if _, err := tx.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestWrongRequestsAreRefused(t *testing.T) {
	t.Parallel()
	for words, change := range map[string]func(*kinds.HTTP){
		`Method "TRACE"`:      func(h *kinds.HTTP) { h.Method = "TRACE" },
		"URL":                 func(h *kinds.HTTP) { h.URL = kinds.Plain("ftp://x/") },
		"none for GET":        func(h *kinds.HTTP) { h.Method, h.Body.JSON = "GET", true },
		"JSON or Text":        func(h *kinds.HTTP) { h.Body = kinds.Body{JSON: true, Text: kinds.Plain("x")} },
		`OnTimeout "hope"`:    func(h *kinds.HTTP) { h.OnTimeout = "hope" },
		"MaxResponse":         func(h *kinds.HTTP) { h.MaxResponse = 1 << 40 },
		`Pointer "ok"`:        func(h *kinds.HTTP) { h.Expect.Pointer = "ok" },
		`RetryOn "timeout"`:   func(h *kinds.HTTP) { h.RetryOn = []string{"timeout"} },
		`Headers "pawl-lock"`: func(h *kinds.HTTP) { h.Headers = map[string]kinds.Text{"pawl-lock": kinds.Plain("x")} },
		`Method "GET"`:        func(h *kinds.HTTP) { h.Method, h.ValidFor = "GET", time.Hour },
		"KeyLifetime":         func(h *kinds.HTTP) { h.KeyLifetime = -5 },
		"ValidFor":            func(h *kinds.HTTP) { h.ValidFor = -5 },
		"would do it twice": func(h *kinds.HTTP) {
			h.OnTimeout, h.KeyLifetime = kinds.TimeoutRetry, jobs.NoKeys
		},
		`Probe.Method "POST"`: func(h *kinds.HTTP) { h.Probe = &kinds.Probe{Method: "POST"} },
		"Probe.URL":           func(h *kinds.HTTP) { h.Probe = &kinds.Probe{} },
		"Probe.Absent 404": func(h *kinds.HTTP) {
			h.Probe = &kinds.Probe{URL: kinds.Plain("http://x/"), Expect: kinds.Answer{Status: []int{404}}}
		},
		"Probe.Expect.Pointer": func(h *kinds.HTTP) {
			h.Probe = &kinds.Probe{URL: kinds.Plain("http://x/"), Expect: kinds.Answer{Pointer: "x"}}
		},
		"a value that JSON ha": func(h *kinds.HTTP) { h.Expect.Equals = func() {} },
	} {
		h := kinds.HTTP{URL: kinds.Plain("http://x/")}
		change(&h)
		mustFail(t, h, words)
	}
}
