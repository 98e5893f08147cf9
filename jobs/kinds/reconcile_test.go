package kinds_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/internal/pgtest"
	"pawl/jobs"
	"pawl/jobs/kinds"
)

// unmatched is what is said differently of job x, by key.
func unmatched(t *testing.T, pool *pgxpool.Pool) map[string]string {
	t.Helper()
	list, err := jobs.NewHistory(pool).Unmatched(t.Context(), "x", 0)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, d := range list {
		found[d.IdempotencyKey] = d.Kind + ": " + d.Detail
	}
	return found
}

// done puts an effect of job x into the journal that is done.
func done(t *testing.T, pool *pgxpool.Pool, key, request string) {
	t.Helper()
	exec(t, pool, `insert into pawl.effects (job, key, revision, effect, idempotency_key, state, request, run, token, operation, ended_at)
		values ('x', '2026-09-16', 1, $1, $1, 'done', $2, gen_random_uuid(), 1, gen_random_uuid(), clock_timestamp())`, key, request)
}

// compared runs a reconciliation once and returns its run.
func compared(t *testing.T, pool *pgxpool.Pool, c kinds.Reconcile) jobs.RunRecord {
	t.Helper()
	c.Of = "x"
	if c.Settle == 0 {
		c.Settle = time.Nanosecond
	}
	fn, err := c.Func()
	if err != nil {
		t.Fatal(err)
	}
	start(t, jobs.Config{Pool: pool}, jobs.Job{Name: "check", Schedule: "0 0 * * *", Start: yesterday(), MaxRetries: jobs.NoRetries, Func: fn})
	until(t, pool, 1, `select count(*) from pawl.runs where job = 'check' and ended_at is not null`)
	list, err := jobs.NewHistory(pool).Runs(t.Context(), jobs.RunFilter{Job: "check"})
	if err != nil {
		t.Fatal(err)
	}
	return list[0]
}

// read is how many receipts a run has read.
func read(r jobs.RunRecord) int64 {
	if r.Done == nil {
		return -1
	}
	return *r.Done
}

func same(t *testing.T, got, want map[string]string) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("found %v\nwant  %v", got, want)
	}
}

func TestReceiptsInATableAreComparedWithTheJournal(t *testing.T) {
	t.Parallel()
	for name, own := range map[string]bool{"pawl's own database": true, "another one": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.New(t)
			theirs := pool
			if !own {
				theirs = pgtest.New(t)
			}
			exec(t, theirs, `create table provider_file (reference text, note text, cents numeric, booked timestamptz)`)
			exec(t, theirs, `insert into provider_file select 'k' || i, 'line ' || i, i, now() from generate_series(1, 1300) i`)
			exec(t, theirs, `insert into provider_file values ('old', 'of last week', 1, now() - interval '7 days')`)
			exec(t, pool, `insert into pawl.effects (job, key, revision, effect, idempotency_key, state, request, run, token, operation, ended_at)
				select 'x', '1', 1, 'k' || i, 'k' || i, 'done', jsonb_build_object('cents', case i when 7 then '8' else i::text end), gen_random_uuid(), 1, gen_random_uuid(), clock_timestamp()
				  from generate_series(2, 1301) i`)
			q := kinds.ReceiptRows{
				Text: "select reference as key, note as detail, cents from provider_file where booked >= $2 and booked < $1 -- and no more\n;",
				Args: []any{template("{{to}}"), template("{{from}}")},
			}
			if !own {
				q.Database = theirs
			}
			r := compared(t, pool, kinds.Reconcile{SQL: &q, Compare: []kinds.Comparison{{Theirs: "/cents", Ours: "/cents"}}})
			if r.State != "complete" || read(r) != 1300 {
				t.Errorf("%s %q, %d receipts", r.State, r.Error, read(r))
			}
			same(t, unmatched(t, pool), map[string]string{
				"k1": "stray: line 1", "k7": `differs: /cents: we asked for "8", theirs has 7`, "k1301": `absent: {"cents": "1301"}`,
			})
			if n := count(t, pool, `select count(*) from pawl.events where kind = 'unmatched' and job = 'check' and detail ->> 'of' = 'x' and (detail ->> 'new')::int = 3`); n != 1 {
				t.Errorf("%d events", n)
			}
		})
	}
}

func TestAQueryThatIsNoneOfReceiptsSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for query, words := range map[string]string{
		`select 'a' as reference`: `row 1 has no /key: it is {"reference":"a"}`,
		`select null as key`:      "row 1 /key is null, where a key is expected",
		`select 1`:                "row 1 has no /key",
		`with x as (insert into pawl.channels (name) values ('a') returning name) select name as key from x`: "data-modifying",
		`select pg_notify('a', 'b')::text as key, nextval('s') as detail`:                                    "read-only transaction",
		`select key from nowhere`: "does not exist",
	} {
		t.Run(query, func(t *testing.T) {
			t.Parallel()
			other := pgtest.New(t)
			exec(t, other, `create sequence s`)
			for name, database := range map[string]*pgxpool.Pool{"pawl's own": nil, "another": other} {
				pool := pgtest.New(t)
				exec(t, pool, `create sequence s`)
				if r := compared(t, pool, kinds.Reconcile{SQL: &kinds.ReceiptRows{Text: query, Database: database}}); r.State != "failed" || !strings.Contains(r.Error, words) {
					t.Errorf("%s: %s %q, want %q", name, r.State, r.Error, words)
				}
			}
		})
	}
}

func TestReceiptsAreReadPageByPage(t *testing.T) {
	t.Parallel()
	const pages = 3
	for name, c := range map[string]struct {
		p    kinds.ReceiptPages
		next func(w http.ResponseWriter, x *http.Request, n int) any // what a page says of the next one, n
	}{
		"an address": {kinds.ReceiptPages{Next: "/meta/next"}, func(_ http.ResponseWriter, x *http.Request, n int) any {
			return fmt.Sprintf("http://%s/?page=%d", x.Host, n)
		}},
		"an address within the host": {kinds.ReceiptPages{Next: "/meta/next"}, func(_ http.ResponseWriter, _ *http.Request, n int) any { return fmt.Sprint("?page=", n) }},
		"a mark":                     {kinds.ReceiptPages{Next: "/meta/next", NextParam: "page"}, func(_ http.ResponseWriter, _ *http.Request, n int) any { return n }},
		"a link": {kinds.ReceiptPages{}, func(w http.ResponseWriter, _ *http.Request, n int) any {
			w.Header().Add("Link", `</?page=0>; rel="first"`)
			w.Header().Add("Link", fmt.Sprintf(`</other>; rel="last", </?page=%d>; title="a, b"; rel="next"`, n))
			return nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.New(t)
			x := receive(t, func(_ int, w http.ResponseWriter, r *http.Request) {
				n := 0
				_, _ = fmt.Sscan(r.URL.Query().Get("page"), &n)
				if r.URL.Path != "/" || r.Header.Get("Authorization") != "Bearer "+secret {
					t.Errorf("asked %s with %q", r.URL, r.Header)
				}
				page := map[string]any{"data": []any{map[string]any{"ref": fmt.Sprint("k", n), "cents": 100 + n}, map[string]any{"ref": 70 + n, "note": "a stray"}}, "meta": map[string]any{}}
				if n < pages-1 {
					page["meta"] = map[string]any{"next": c.next(w, r, n+1)}
				}
				_ = json.NewEncoder(w).Encode(page)
			})
			for i := range pages {
				done(t, pool, fmt.Sprint("k", i), `{"method":"POST","body":{"amount":100}}`)
			}
			p := c.p
			p.URL, p.Headers, p.Items, p.Key, p.Detail = template(x.URL+"/?from={{from}}&to={{to}}"), map[string]kinds.Text{"Authorization": template("Bearer ${secret}")}, "/data", "/ref", "/note"
			r := compared(t, pool, kinds.Reconcile{HTTP: &p, Compare: []kinds.Comparison{{Theirs: "/cents", Ours: "/body/amount"}}})
			if r.State != "complete" || len(x.requests()) != pages || read(r) != 2*pages {
				t.Errorf("%s %q, %d requests, %d receipts", r.State, r.Error, len(x.requests()), read(r))
			}
			same(t, unmatched(t, pool), map[string]string{
				"k1": "differs: /cents: we asked for 100, theirs has 101", "k2": "differs: /cents: we asked for 100, theirs has 102",
				"70": "stray: a stray", "71": "stray: a stray", "72": "stray: a stray",
			})
			query := x.requests()[0].URL.Query()
			from, err := time.Parse(time.RFC3339Nano, query.Get("from"))
			to, err2 := time.Parse(time.RFC3339Nano, query.Get("to"))
			if err != nil || err2 != nil || to.Sub(from) != 48*time.Hour {
				t.Errorf("from %v to %v, %v %v", from, to, err, err2)
			}
		})
	}
}

func TestAPageOfTheWrongShapeSaysWhatWasWrong(t *testing.T) {
	t.Parallel()
	elsewhere := receive(t, func(_ int, _ http.ResponseWriter, _ *http.Request) { t.Error("it was asked elsewhere") })
	for name, c := range map[string]struct {
		page, words string
		code        int
	}{
		"no JSON":         {"<html>", `page 1: is not JSON: it begins "<html>"`, 200},
		"an error":        {`{"error":"no such account"}`, `page 1: answered 403 Forbidden: "{\"error\":\"no such account\"}"`, 403},
		"busy":            {"", "page 1: answered 503", 503},
		"no list":         {`{"items":[]}`, `page 1: has no /data: it is {"items":[]}`, 200},
		"another list":    {`{"data":{"a":1}}`, `page 1: /data is {"a":1}, where a list is expected`, 200},
		"no key":          {`{"data":[{"id":"k"},{"name":"n"}]}`, `page 1: item 2 has no /id: it is {"name":"n"}`, 200},
		"no text":         {`{"data":[{"id":{}}]}`, `page 1: item 1 /id is {}, where a key is expected`, 200},
		"an empty key":    {`{"data":[{"id":""}]}`, `item 1 /id is "", where a key is expected`, 200},
		"no item":         {`{"data":[7]}`, `item 1 has no /id: it is 7`, 200},
		"next is a map":   {`{"data":[],"next":{"page":2}}`, `page 1: /next is {"page":2}, where the next page's address is expected`, 200},
		"next is a flag":  {`{"data":[],"next":true}`, `/next is true, where the next page's address is expected`, 200},
		"next is itself":  {`{"data":[],"next":"/"}`, `page 2: its address is that of an earlier page`, 200},
		"next is away":    {`{"data":[],"next":"` + elsewhere.URL + `"}`, `the next page is elsewhere, at ` + elsewhere.URL + `, which is not followed`, 200},
		"next is a file":  {`{"data":[],"next":"file:///etc/passwd"}`, `the next page is elsewhere, at file://`, 200},
		"a very long one": {`{"data":[` + strings.Repeat(" ", 2000) + `]}`, `page 1: has more than 1024 bytes`, 200},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.New(t)
			x := receive(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.code)
				_, _ = io.WriteString(w, c.page)
			})
			done(t, pool, "k", "1")
			r := compared(t, pool, kinds.Reconcile{HTTP: &kinds.ReceiptPages{URL: kinds.Plain(x.URL + "/"), Items: "/data", Key: "/id", Next: "/next", MaxPage: 1024}})
			if r.State != "failed" || !strings.Contains(r.Error, c.words) {
				t.Errorf("%s %q, want %q", r.State, r.Error, c.words)
			}
			if found := unmatched(t, pool); len(found) > 0 { // half a list is no reason to call something absent
				t.Errorf("found %v", found)
			}
		})
	}
}

func TestWrongReconciliationsAreRefused(t *testing.T) {
	t.Parallel()
	for words, change := range map[string]func(*kinds.Reconcile){
		"one of SQL and HTTP":    func(c *kinds.Reconcile) { c.HTTP = nil },
		"Reconciliation.Of":      func(c *kinds.Reconcile) { c.Of = "" },
		"Reconciliation.Since":   func(c *kinds.Reconcile) { c.Since = time.Minute },
		"2 statements":           func(c *kinds.Reconcile) { c.HTTP, c.SQL = nil, &kinds.ReceiptRows{Text: "select 1; select 2"} },
		"the query uses $1":      func(c *kinds.Reconcile) { c.HTTP, c.SQL = nil, &kinds.ReceiptRows{Text: "select $1"} },
		`HTTP.Key ""`:            func(c *kinds.Reconcile) { c.HTTP.Key = "" },
		`HTTP.Items "data"`:      func(c *kinds.Reconcile) { c.HTTP.Items = "data" },
		"HTTP.URL":               func(c *kinds.Reconcile) { c.HTTP.URL = kinds.Plain("ftp://x/") },
		"HTTP.MaxPage":           func(c *kinds.Reconcile) { c.HTTP.MaxPage = 1 << 40 },
		"HTTP.NextParam":         func(c *kinds.Reconcile) { c.HTTP.NextParam = "after" },
		`Compare.Theirs "cents"`: func(c *kinds.Reconcile) { c.Compare = []kinds.Comparison{{Theirs: "cents", Ours: "/cents"}} },
	} {
		c := kinds.Reconcile{Of: "x", HTTP: &kinds.ReceiptPages{URL: kinds.Plain("http://x/"), Key: "/id"}}
		change(&c)
		mustFail(t, c, words)
	}
}
