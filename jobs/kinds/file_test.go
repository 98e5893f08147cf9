package kinds_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/internal/pgtest"
	"pawl/jobs"
	"pawl/jobs/jobfile"
)

// bank keeps keys, loses the reply to the first payment, and tells of one payment a page.
type bank struct {
	mu    sync.Mutex
	keys  []string // in the order in which they were paid
	paid  map[string]int
	posts int
}

func (b *bank) answer(t *testing.T, w http.ResponseWriter, r *http.Request) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if r.Header.Get("Authorization") != "Bearer "+secret {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	switch key := r.URL.Query().Get("key"); {
	case r.Method == http.MethodPost:
		var order struct{ Cents int }
		body, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(body, &order); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		b.posts++
		b.pay(r.Header.Get("Idempotency-Key"), order.Cents)
		if b.posts == 1 {
			panic(http.ErrAbortHandler)
		}
	case key != "":
		if _, there := b.paid[key]; !there {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = io.WriteString(w, `{"state":"booked"}`)
	default:
		n := 0
		_, _ = fmt.Sscan(r.URL.Query().Get("page"), &n)
		page := map[string]any{"data": []any{map[string]any{"key": b.keys[n], "cents": b.paid[b.keys[n]]}}, "next": nil}
		if n+1 < len(b.keys) {
			page["next"] = fmt.Sprint("/payouts?page=", n+1)
		}
		_ = json.NewEncoder(w).Encode(page)
	}
}

func (b *bank) pay(key string, cents int) {
	if _, there := b.paid[key]; !there {
		b.keys, b.paid[key] = append(b.keys, key), cents
	}
}

// files are the jobs of a file.
func files(t *testing.T, source string, databases map[string]*pgxpool.Pool) []jobs.Job {
	t.Helper()
	f, issues := jobfile.Parse("pawl.yaml", []byte(source), func(string) string { return secret })
	if jobfile.Worst(issues) > jobfile.Note {
		t.Fatal(jobfile.Lines(issues))
	}
	var all []jobs.Job
	for i := range f.Jobs {
		j, err := f.Jobs[i].Load(jobfile.Host{Databases: databases})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, j)
	}
	return all
}

// A team without Go pays, loses a reply, asks, and finds what the bank has paid under a key of nobody's, in the bank's list and
// in its file.
func TestAFilePaysOnceAndFindsWhatTheOtherSideSaysDifferently(t *testing.T) {
	t.Parallel()
	pool, warehouse, b := pgtest.New(t), pgtest.New(t), &bank{paid: map[string]int{}}
	x := receive(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		r.Body = io.NopCloser(strings.NewReader(`{"cents":100}`)) // which receive has read
		b.answer(t, w, r)
	})
	exec(t, warehouse, `create table bank_file (reference text, cents int)`)
	all := files(t, strings.ReplaceAll(`version: 1
defaults: {owner: us, timezone: UTC}
databases: {warehouse: {url: "${env:URL}"}}
jobs:
  - name: x
    kind: http
    schedule: "@manual"
    retries: {min_delay: 1s, max_delay: 1s}
    http:
      url: BANK/payouts
      headers: {Authorization: "Bearer ${env:TOKEN}"}
      body: {json: {cents: 100}}
      probe:
        url: BANK/payouts?key={{effect.key}}
        headers: {Authorization: "Bearer ${env:TOKEN}"}
        expect: {json: {pointer: /state, equals: booked}}
  - name: list
    kind: reconcile
    schedule: "@manual"
    reconcile:
      of: x
      settle: 1s
      http: {url: "BANK/payouts?from={{from}}", headers: {Authorization: "Bearer ${env:TOKEN}"}, items: /data, key: /key, next: /next}
      compare: {theirs: /cents, ours: /body/cents}
  - name: file
    kind: reconcile
    schedule: "@manual"
    reconcile:
      of: x
      settle: 1s
      sql: {database: warehouse, statement: "select reference as key, cents from bank_file where $1::timestamptz < now()", args: ["{{from}}"]}
      compare: {theirs: /cents, ours: /body/cents}
`, "BANK", x.URL), map[string]*pgxpool.Pool{"warehouse": warehouse})
	start(t, jobs.Config{Pool: pool}, all...)
	until(t, pool, len(all), `select count(*) from pawl.schedules where job in ('x', 'list', 'file')`)
	owe := func(job string, n int) {
		t.Helper()
		if _, err := jobs.Trigger(t.Context(), pool, job, jobs.TriggerConfig{Actor: "ann"}); err != nil {
			t.Fatal(err)
		}
		until(t, pool, n, `select count(*) from pawl.periods where job = $1 and state = 'complete'`, job)
	}
	owe("x", 1)
	owe("x", 2)
	b.mu.Lock()
	posts, keys := b.posts, slices.Clone(b.keys)
	b.pay("x:token-42", 100)
	b.mu.Unlock()
	if posts != 2 || len(keys) != 2 {
		t.Errorf("%d requests, paid %q: want one for each period, though a reply was lost", posts, keys)
	}
	period := journal(t, pool)[0].Key
	sends, err := jobs.RerunEffects(t.Context(), pool, "x", period)
	if want := (jobs.Effect{Request: "POST " + x.URL + "/payouts", Key: "x:" + period + ":rev-2"}); err != nil || len(sends) != 1 || sends[0] != want {
		t.Errorf("a rerun that repeats lists %+v, %v, want %+v alone", sends, err, want)
	}
	owe("list", 1)
	same(t, unmatched(t, pool), map[string]string{"x:token-42": `stray: {"cents":100,"key":"x:token-42"}`})
	until(t, pool, 2, `select count(*) from pawl.effects where matched_at is not null`)
	until(t, pool, 1, `select count(*) from pawl.events where kind = 'unmatched' and job = 'list' and detail ->> 'first' = 'x:token-42'`)

	exec(t, warehouse, `insert into bank_file values ($1, 100), ($2, 101)`, keys[0], keys[1])
	owe("file", 1)
	found := unmatched(t, pool)
	if got := found[keys[1]]; got != "differs: /cents: we asked for 100, theirs has 101" {
		t.Errorf("found %v", found)
	}
	for _, e := range journal(t, pool) {
		if n := count(t, pool, `select count(*) from pawl.effects e where e::text like '%' || $1 || '%'`, secret); n != 0 || e.State != jobs.EffectDone {
			t.Errorf("recorded %+v, %d with the secret", e, n)
		}
	}
}
