package kinds_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/internal/pgtest"
	"pawl/jobs"
	"pawl/jobs/kinds"
)

// journal are the effects of job x, the first one first.
func journal(t *testing.T, pool *pgxpool.Pool) (list []jobs.EffectInfo) {
	t.Helper()
	list, err := jobs.NewHistory(pool).Effects(t.Context(), jobs.EffectFilter{Job: "x"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range len(list) / 2 {
		list[i], list[len(list)-1-i] = list[len(list)-1-i], list[i]
	}
	return list
}

func decide(t *testing.T, pool *pgxpool.Pool, id int64, d jobs.EffectDecision) {
	t.Helper()
	if err := jobs.DecideEffect(t.Context(), pool, id, d, "ann", "asked the bank"); err != nil {
		t.Fatal(err)
	}
}

func retry(t *testing.T, pool *pgxpool.Pool, key string) {
	t.Helper()
	if err := jobs.Retry(t.Context(), pool, "x", key, "ann"); err != nil {
		t.Fatal(err)
	}
}

func TestTheJournalHasARequestWithoutHeadersAndSecrets(t *testing.T) {
	t.Parallel()
	x := receive(t, func(_ int, w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"id": "po_1"}`) })
	host := strings.TrimPrefix(x.URL, "http://")
	r, pool := send(t, kinds.HTTP{
		URL:     template("http://ann:hunter2@" + host + "/${secret}/{{period.key}}?a=1&run={{run.id}}"),
		Headers: map[string]kinds.Text{"Authorization": template("Bearer ${secret}")},
		Body:    kinds.Body{JSON: map[string]any{"day": template("{{period.key}}"), "key": template("${secret}"), "try": template("{{run.attempt}}")}},
	})
	q := x.requests()[0]
	if r.State != "complete" || !strings.Contains(q.body, secret) || !strings.Contains(q.URL.Path, secret) {
		t.Fatalf("%s %q, sent %s %s", r.State, r.Error, q.URL, q.body)
	}
	e := journal(t, pool)[0]
	want := fmt.Sprintf(`{"method":"POST","url":"http://%s/${secret}/%s?a=1&run={{run.id}}","body":{"day":"%[2]s","key":"${secret}","try":"{{run.attempt}}"}}`, host, r.Key)
	if string(e.Request) != want || string(e.Response) != `{"status":200,"body":{"id":"po_1"}}` || e.State != jobs.EffectDone || e.IdempotencyKey != "x:"+r.Key || e.Sends != 1 {
		t.Errorf("recorded %s %s %s %s, want %s", e.State, e.IdempotencyKey, e.Request, e.Response, want)
	}
	if n := count(t, pool, `select count(*) from pawl.effects e where e::text like '%hunter2%' or e::text like '%s3cret%'`); n != 0 {
		t.Error("a secret is in the journal")
	}
}

func TestTheIntentIsOnRecordBeforeTheRequestIsSent(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	seen := make(chan string, 1)
	x := receive(t, func(_ int, _ http.ResponseWriter, _ *http.Request) { seen <- journal(t, pool)[0].State })
	start(t, jobs.Config{Pool: pool}, job(t, kinds.HTTP{URL: kinds.Plain(x.URL)}))
	if state := <-seen; state != jobs.EffectIntended {
		t.Errorf("while it was sent it was %s", state)
	}
	run(t, pool)
}

func TestARequestOfWhichNobodyKnowsWaitsForAPersonWhoDecides(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		d      jobs.EffectDecision
		sent   int
		period string
		words  string // of the second run's output or error
	}{
		"done":    {jobs.EffectDecision{State: jobs.EffectDone, Response: json.RawMessage(`{"ref":"po_81"}`)}, 1, "complete", "not sent: it is on record as done"},
		"failed":  {jobs.EffectDecision{State: jobs.EffectFailed}, 2, "complete", "200 OK"},
		"dropped": {jobs.EffectDecision{State: jobs.EffectDropped}, 1, "skipped exit_code", "asked the bank"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := receive(t, func(n int, _ http.ResponseWriter, _ *http.Request) {
				if n == 0 {
					panic(http.ErrAbortHandler) // the reply is lost
				}
			})
			r, pool := send(t, kinds.HTTP{URL: kinds.Plain(x.URL)})
			e := journal(t, pool)[0]
			if r.period != "dead uncertain" || e.State != jobs.EffectUncertain || !strings.Contains(r.Error, fmt.Sprintf("pawl effects decide %d", e.ID)) {
				t.Fatalf("period %s, effect %s, %q", r.period, e.State, r.Error)
			}
			until(t, pool, 1, `select count(*) from pawl.events where kind = 'uncertain' and job = 'x'`)
			retry(t, pool, r.Key) // before anybody has decided
			until(t, pool, 2, `select count(*) from pawl.runs where ended_at is not null`)
			if n := len(x.requests()); n != 1 {
				t.Fatalf("%d requests without a decision", n)
			}
			decide(t, pool, e.ID, c.d)
			retry(t, pool, r.Key)
			last := runs(t, pool, 3)[2]
			if n := len(x.requests()); last.period != c.period || n != c.sent || !strings.Contains(last.text()+last.Error, c.words) {
				t.Errorf("period %s, %d requests, %q %q", last.period, n, last.text(), last.Error)
			}
			if keys := x.keys(); c.sent == 2 && keys[1] != keys[0]+":try-2" {
				t.Errorf("keys %q", keys)
			}
			if c.d.State == jobs.EffectDone && !strings.Contains(last.text(), `its answer was {"ref":"po_81"}`) {
				t.Errorf("output %q", last.text())
			}
		})
	}
}

// retold is a job whose retries come at once.
func retold(t *testing.T, h kinds.HTTP) jobs.Job {
	t.Helper()
	j := job(t, h)
	j.RetryDelay, j.RetryMaxDelay = time.Second, time.Second
	return j
}

func TestARetryAsksForTheSameWhoeverSendsIt(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	x := receive(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		if n == 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	start(t, jobs.Config{Pool: pool}, retold(t, kinds.HTTP{URL: template(x.URL + "/{{run.id}}"), Body: kinds.Body{Text: template("{{run.attempt}}")}}))
	until(t, pool, 1, `select count(*) from pawl.periods where state = 'complete'`)
	q := x.requests()
	if len(q) != 2 || q[0].body != "1" || q[1].body != "2" || q[0].URL.Path == q[1].URL.Path || x.keys()[0] != x.keys()[1] {
		t.Errorf("%d requests, keys %q", len(q), x.keys())
	}
}

func TestAChangedRequestIsSentOnlyWhenSomebodyRepeatsTheEffects(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	x := receive(t, ok)
	stop := start(t, jobs.Config{Pool: pool}, job(t, kinds.HTTP{URL: kinds.Plain(x.URL), Body: kinds.Body{Text: kinds.Plain("100 cents")}}))
	r := run(t, pool)
	_ = stop()
	start(t, jobs.Config{Pool: pool}, job(t, kinds.HTTP{URL: kinds.Plain(x.URL), Body: kinds.Body{Text: kinds.Plain("200 cents")}}))
	again := func(repeat bool, state string) {
		t.Helper()
		if _, err := jobs.Rerun(t.Context(), pool, "x", r.Key, jobs.RerunConfig{Actor: "ann", Reason: "late", RepeatEffects: repeat}); err != nil {
			t.Fatal(err)
		}
		until(t, pool, 1, `select count(*) from (select state from pawl.periods order by revision desc limit 1) p where state = $1`, state)
	}
	again(false, "dead")
	last := runs(t, pool, 2)[1]
	if len(x.requests()) != 1 || !strings.Contains(last.Error, "request has changed under an old key: /body; it is done") || strings.Contains(last.Error, "cents") || !strings.Contains(last.Error, "--repeat-effects") {
		t.Errorf("%d requests, %q", len(x.requests()), last.Error)
	}
	if err := jobs.Cancel(t.Context(), pool, "x", r.Key, "ann", "wrong way"); err != nil {
		t.Fatal(err)
	}
	again(true, "complete")
	if q := x.requests(); len(q) != 2 || q[1].body != "200 cents" || x.keys()[1] != "x:"+r.Key+":rev-3" {
		t.Errorf("%d requests, keys %q", len(q), x.keys())
	}
}

// The file has a wrong port: nobody can have got it, so that it is mended and retried.
func TestARequestThatNeverLeftMayBeMended(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	x := receive(t, ok)
	stop := start(t, jobs.Config{Pool: pool}, retold(t, kinds.HTTP{URL: kinds.Plain("http://127.0.0.1:1/"), RetryOn: []string{}}))
	r := run(t, pool)
	if e := journal(t, pool)[0]; r.period != "dead failed" || e.State != jobs.EffectIntended || e.Sends != 0 {
		t.Fatalf("period %s, recorded %+v", r.period, e)
	}
	_ = stop()
	start(t, jobs.Config{Pool: pool}, retold(t, kinds.HTTP{URL: kinds.Plain(x.URL)}))
	retry(t, pool, r.Key)
	until(t, pool, 1, `select count(*) from pawl.periods where state = 'complete'`)
	if keys := x.keys(); len(keys) != 1 || keys[0] != "x:"+r.Key {
		t.Errorf("keys %q", keys)
	}
}

func TestAReceiverThatKeepsNoKeysIsAskedOnce(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	x := receive(t, func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	start(t, jobs.Config{Pool: pool}, retold(t, kinds.HTTP{URL: kinds.Plain(x.URL), KeyLifetime: jobs.NoKeys}))
	until(t, pool, 1, `select count(*) from pawl.periods where state = 'dead' and reason = 'uncertain'`)
	if n := len(x.requests()); n != 1 {
		t.Errorf("%d requests", n)
	}
}

func TestAfterItsTimeNothingIsSentAnyMore(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	x := receive(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		exec(t, pool, `update pawl.effects set at = at - interval '1 h', valid_until = valid_until - interval '1 h'`)
		w.WriteHeader(http.StatusUnprocessableEntity)
	})
	start(t, jobs.Config{Pool: pool}, retold(t, kinds.HTTP{URL: kinds.Plain(x.URL), ValidFor: time.Hour}))
	until(t, pool, 1, `select count(*) from pawl.periods where state = 'dead'`)
	retry(t, pool, run(t, pool).Key)
	until(t, pool, 2, `select count(*) from pawl.runs where ended_at is not null`)
	if last := runs(t, pool, 2)[1]; len(x.requests()) != 1 || last.period != "dead failed" || !strings.Contains(last.Error, "it was valid until") {
		t.Errorf("%d requests, period %s, %q", len(x.requests()), last.period, last.Error)
	}
}

func TestEachShardHasARequestOfItsOwn(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	x := receive(t, ok)
	j := job(t, kinds.HTTP{URL: kinds.Plain(x.URL)})
	j.ShardKeys = func(context.Context, *jobs.Run) ([]string, error) { return []string{"eu", "us"}, nil }
	start(t, jobs.Config{Pool: pool}, j)
	until(t, pool, 1, `select count(*) from pawl.periods where state = 'complete' and parent is null`)
	keys := x.keys()
	slices.Sort(keys)
	if len(keys) != 2 || !strings.HasSuffix(keys[0], "#eu") || !strings.HasSuffix(keys[1], "#us") {
		t.Errorf("keys %q", keys)
	}
}

func TestReadingIsNotInTheJournal(t *testing.T) {
	t.Parallel()
	x := receive(t, ok)
	r, pool := send(t, kinds.HTTP{Method: http.MethodGet, URL: kinds.Plain(x.URL)})
	if n := len(journal(t, pool)); n != 0 || r.State != "complete" || x.keys()[0] != "x:"+r.Key {
		t.Errorf("%d effects, %s, keys %q", n, r.State, x.keys())
	}
}

func TestWhatIsTooLongForTheJournalIsDoneAllTheSame(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ answer, want string }{
		"long":   {strings.Repeat("\x00<", 40<<10), `{"status":200,"body":"` + "\ufffd<"},
		"deep":   {strings.Repeat("[", 5000) + strings.Repeat("]", 5000), `{"status":200,"body":"[[[`},
		"empty":  {"", `{"status":200}`},
		"no UTF": {"\xff", `{"status":200,"body":"` + "\ufffd" + `"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := receive(t, func(_ int, w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, c.answer) })
			r, pool := send(t, kinds.HTTP{URL: kinds.Plain(x.URL), Body: kinds.Body{Text: kinds.Plain(strings.Repeat("y", 100<<10))}})
			e := journal(t, pool)[0]
			if got := strings.ReplaceAll(strings.ReplaceAll(string(e.Response), `\u0000`, "\ufffd"), `\u003c`, "<"); r.State != "complete" || e.State != jobs.EffectDone || !strings.HasPrefix(got, c.want) {
				t.Errorf("%s %q, effect %s, response %.60s, want %s", r.State, r.Error, e.State, e.Response, c.want)
			}
			if len(e.Request) > 1000 || !strings.Contains(string(e.Request), `"body_sha256":"`) {
				t.Errorf("request %.200s", e.Request)
			}
		})
	}
}
