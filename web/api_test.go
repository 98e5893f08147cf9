package web_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestTheOverviewHasItsJSONShape(t *testing.T) {
	t.Parallel()
	srv, _ := open(t, story, nil)
	got := send(t, http.MethodGet, srv.URL+"/api/overview")
	if got.status != http.StatusOK || got.header.Get("Content-Type") != "application/json" {
		t.Fatalf("overview = %d %s %s", got.status, got.header.Get("Content-Type"), got.body)
	}
	var all map[string]json.RawMessage
	decode(t, got.body, &all)
	keys(t, "overview", all, "counts holders let_through now refusals runs stale_claims")
	for list, want := range map[string]string{
		"holders":      "acquired_at expires_at holder job key lock period renewed_at state token ttl",
		"stale_claims": "acquired_at beats ended_at holder how key key_name lock longest_gap refusals request_id successor token",
		"refusals":     "at current holder late_by lock passed statement target token",
		"runs":         "attempt done ended_at error holder id job key lock revision started_at state token total",
	} {
		var rows []map[string]json.RawMessage
		decode(t, string(all[list]), &rows)
		if len(rows) == 0 {
			t.Fatalf("%s is empty", list)
		}
		keys(t, list, rows[0], want)
	}
}

func keys(t *testing.T, what string, m map[string]json.RawMessage, want string) {
	t.Helper()
	if got := strings.Join(slices.Sorted(maps.Keys(m)), " "); got != want {
		t.Errorf("%s has %q, want %q", what, got, want)
	}
}

func decode(t *testing.T, body string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(body), into); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
}

func TestTheOverviewTellsTheSameAsThePage(t *testing.T) {
	t.Parallel()
	srv, _ := open(t, story, nil)
	var got struct {
		Now     time.Time
		Holders []struct {
			Lock, State, Holder, Job, Period string
			Token                            int64
			TTL                              float64
		}
		StaleClaims []struct {
			Lock, How string
			Successor *int64
			Refusals  int
		} `json:"stale_claims"`
		Refusals []struct {
			Token, Current int64
			LateBy         float64 `json:"late_by"`
		}
		Runs   []struct{ State string }
		Counts struct {
			Held, Stale, Open, Running, Refusals int
			QueueDepth                           int `json:"queue_depth"`
		}
	}
	decode(t, send(t, http.MethodGet, srv.URL+"/api/overview").body, &got)
	if h := got.Holders; len(h) != 2 || h[0].Lock != "job:settle" || h[0].State != "held" || h[0].TTL != 30 || h[0].Period != "2026-09-16" {
		t.Errorf("holders = %+v", h)
	}
	if s := got.StaleClaims; len(s) != 2 || s[0].Lock != "gdpr:purge" || s[0].Successor != nil || s[1].How != "taken_over" || s[1].Refusals != 1 ||
		s[1].Successor == nil || *s[1].Successor != 1795969942676573 {
		t.Errorf("stale claims = %+v", s)
	}
	if r := got.Refusals; len(r) != 1 || r[0].Token != 1795969904000001 || r[0].Current != 1795969942676573 || r[0].LateBy != 112 {
		t.Errorf("refusals = %+v", r)
	}
	if len(got.Runs) != 5 || got.Runs[0].State != "running" {
		t.Errorf("runs = %+v", got.Runs)
	}
	if c := got.Counts; c.Held != 2 || c.Stale != 1 || c.Open != 1 || c.Running != 1 || c.Refusals != 1 || c.QueueDepth != 1 {
		t.Errorf("counts = %+v", c)
	}
	if got.Now.IsZero() || got.Now.Location() != time.UTC {
		t.Errorf("now = %v, want UTC", got.Now)
	}
}

func TestTheOverviewHasAHundredOfEachAtMost(t *testing.T) {
	t.Parallel()
	const many = `
insert into pawl.refusals (lock, token, current) select 'job:x', 7, 8 from generate_series(1, 150);
insert into pawl.locks (name, token, incarnation, grant_id, holder, ttl, acquired_at, renewed_at, expires_at)
select 'l' || i, i, 1, gen_random_uuid(), 'h', '30 s', now(), now(), now() + interval '30 s' from generate_series(1, 150) i;
insert into pawl.tenures (lock, token, grant_id, ended_at, how)
select 'x' || i, i, gen_random_uuid(), now(), 'expired' from generate_series(1, 150) i;
insert into pawl.runs (id, job, key, revision, attempt, lock, token, state, ended_at)
select gen_random_uuid(), 'j', 'k', 1, i, 'j', i, 'complete', now() from generate_series(1, 150) i`
	srv, _ := open(t, many, nil)
	var got struct {
		Holders, Refusals, Runs []json.RawMessage
		Stale                   []json.RawMessage `json:"stale_claims"`
	}
	decode(t, send(t, http.MethodGet, srv.URL+"/api/overview").body, &got)
	if len(got.Holders) != 100 || len(got.Refusals) != 100 || len(got.Runs) != 100 || len(got.Stale) != 100 {
		t.Errorf("%d holders, %d refusals, %d runs, %d stale claims, want 100 of each",
			len(got.Holders), len(got.Refusals), len(got.Runs), len(got.Stale))
	}
}

func TestEmptyListsAreListsInJSON(t *testing.T) {
	t.Parallel()
	srv, _ := open(t, "select", nil)
	send(t, http.MethodGet, srv.URL+"/api/overview").has(t, `"holders":[]`, `"stale_claims":[]`, `"refusals":[]`, `"let_through":[]`, `"runs":[]`)
}
