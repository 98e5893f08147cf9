package ui_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pawl/lockrepo"
	"pawl/lockrepo/keys"
	"pawl/web"
	"pawl/web/ui"
)

// slow counts how often the locks are read, each time for a while.
type slow struct {
	world
	reads *atomic.Int64
}

func (s slow) List(ctx context.Context, f lockrepo.Filter) ([]lockrepo.Info, error) {
	s.reads.Add(1)
	<-time.After(150 * time.Millisecond)
	return s.world.List(ctx, f)
}

// However many look, a page is read at most once a second; while nobody looks, never.
func TestFiftyViewersCostOneSetOfQueriesASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const viewers, seconds = 50, 20
		var reads, pages atomic.Int64
		h := ui.New(ui.Config{
			Locks: slow{reads: &reads}, Jobs: world{},
			Who: func(*http.Request) (ui.User, error) { return ui.User{Role: keys.Reader}, nil },
		})
		ctx, cancel := context.WithTimeout(t.Context(), seconds*time.Second)
		defer cancel()
		var all sync.WaitGroup
		for i := range viewers {
			all.Go(func() {
				<-time.After(time.Duration(i) * 37 * time.Millisecond)
				for ctx.Err() == nil {
					rec := httptest.NewRecorder()
					h.ServeHTTP(rec, httptest.NewRequestWithContext(ctx, http.MethodGet, "/ui/locks", nil))
					if rec.Code == http.StatusOK {
						pages.Add(1)
					}
					<-time.After(500 * time.Millisecond) // four times as often as the script asks
				}
			})
		}
		all.Wait()
		if pages.Load() < viewers*seconds {
			t.Errorf("%d pages were answered", pages.Load())
		}
		if n := reads.Load(); n > seconds+1 || n < seconds/2 {
			t.Errorf("%d pages in %d s cost %d reads, want one a second at most", pages.Load(), seconds, n)
		}
		before := reads.Load()
		<-time.After(time.Minute)
		if n := reads.Load() - before; n != 0 {
			t.Errorf("%d reads while nobody looks", n)
		}
	})
}

// A table that somebody has locked costs its panel two seconds, and no other panel anything.
func TestAPanelThatGetsNoAnswerStandsAlone(t *testing.T) {
	t.Parallel()
	srv, pool := open(t, story, nil)
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := tx.Exec(t.Context(), "lock table pawl.refusals in access exclusive mode"); err != nil {
		t.Fatal(err)
	}
	for path, others := range map[string][]string{
		"/":                    {"worker-2/4411/9f3c", "/ui/jobs/settle"},
		"/ui/locks/job:settle": {"worker-2/4411/9f3c"},
	} {
		start := time.Now()
		got := send(t, http.MethodGet, srv.URL+path)
		took := time.Since(start)
		if got.status != http.StatusOK {
			t.Errorf("%s = %d, want 200", path, got.status)
		}
		got.has(t, others...)
		got.has(t, "<strong>No answer.</strong>")
		if took > 2*time.Second+3*time.Second { // the machine may be busy
			t.Errorf("%s took %s, want about two seconds", path, took)
		}
		if took < time.Second {
			t.Errorf("%s took %s: is the table locked?", path, took)
		}
	}
	_ = tx.Rollback(t.Context())
	eventually(t, "the panel is there again", func() bool {
		return !strings.Contains(send(t, http.MethodGet, srv.URL+"/").body, "<strong>No answer.</strong>")
	})
}

// A program that mounts the pages may have a policy of its own: they need nothing but 'self', and keep theirs if it sets none.
func TestThePagesStandInAHostWithItsOwnPolicy(t *testing.T) {
	t.Parallel()
	const own = "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'"
	var inner http.Handler
	open(t, story, func(c *web.Config) { inner = web.Handler(*c) })
	host := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inner.ServeHTTP(policed{w, own}, r)
	}))
	for _, path := range []string{"/", "/ui/locks", "/ui/jobs/settle"} {
		got := send(t, http.MethodGet, host.URL+path)
		if policy := got.header.Get("Content-Security-Policy"); policy != own || got.status != http.StatusOK {
			t.Errorf("%s = %d under %q", path, got.status, policy)
		}
		for _, word := range []string{"nonce", "unsafe", "<style", " style="} {
			got.lacks(t, word)
		}
	}
}

// policed sets the host's policy at the last moment, over that of the pages.
type policed struct {
	http.ResponseWriter
	policy string
}

func (p policed) Unwrap() http.ResponseWriter { return p.ResponseWriter }

func (p policed) WriteHeader(status int) {
	p.Header().Set("Content-Security-Policy", p.policy)
	p.ResponseWriter.WriteHeader(status)
}

// Names, statements and reasons are what anybody may call things: no page runs them, in no state of the rows.
func TestNoPageRunsANameOrShowsAGoValue(t *testing.T) {
	t.Parallel()
	const sql = story + `;
update pawl.runs set holder = null, error = '<script>alert(3)</script>' where ended_at is not null;
update pawl.tenures set holder = null, acquired_at = null, successor = null;
update pawl.refusals set holder = '<script>alert(2)</script>', late_by = null, statement = '<img src=x onerror=alert(1)>';
insert into pawl.audit (actor, action, lock, reason) values ('<script>', '<script>', '<script>alert(1)</script>', '<script>alert(1)</script>')`
	srv, _ := open(t, sql, nil)
	empty, _ := open(t, "select", nil)
	at := 0
	for _, r := range ui.Routes() {
		path := golden[r.Pattern]
		if r.Method != http.MethodGet || path == "" {
			continue
		}
		at++
		path = strings.NewReplacer("%3Cscript%3Ealert(%22x%22)%3C%2Fscript%3E", "job:settle", "locks/%3Cscript%3E", "locks/job:settle", "%3Cscript%3E", "settle").Replace(path)
		for _, s := range []*httptest.Server{srv, empty} {
			got := send(t, http.MethodGet, s.URL+path)
			if got.status >= http.StatusInternalServerError {
				t.Errorf("%s = %d", path, got.status)
			}
			sane(t, path, got.body)
		}
	}
	if at < 10 {
		t.Errorf("%d pages were asked for", at)
	}
}

// Whoever looks, at whatever, changes nothing: no GET and no HEAD is an act.
func TestLookingChangesNothing(t *testing.T) {
	t.Parallel()
	srv, pool := open(t, story, nil)
	digest := func() (sum string) {
		const sql = `
select concat_ws(' ', (select md5(string_agg(l::text, ',' order by name)) from pawl.locks l), (select md5(string_agg(s::text, ',' order by job)) from pawl.schedules s),
       (select md5(string_agg(p::text, ',' order by job, key, revision)) from pawl.periods p), (select md5(string_agg(r::text, ',' order by id)) from pawl.runs r),
       (select count(*) from pawl.tenures), (select count(*) from pawl.refusals), (select count(*) from pawl.audit), (select count(*) from pawl.approvals))`
		if err := pool.QueryRow(t.Context(), sql).Scan(&sum); err != nil {
			t.Fatal(err)
		}
		return sum
	}
	before := digest()
	for pattern, at := range golden {
		if !routed(pattern) || at == "" {
			continue
		}
		at = strings.NewReplacer("%3Cscript%3Ealert(%22x%22)%3C%2Fscript%3E", "job:settle", "locks/%3Cscript%3E", "locks/job:settle", "%3Cscript%3E", "settle").Replace(at)
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			for _, query := range []string{"", "reason=because+I+can&token=1795969942676573&decision=approve&value=dark&owe=all"} {
				path := at
				if query != "" {
					path, _, _ = strings.Cut(at, "?")
					path += "?" + query
				}
				send(t, method, srv.URL+path)
			}
		}
		if after := digest(); after != before {
			t.Fatalf("looking at %s has changed something:\n%s\n%s", at, before, after)
		}
	}
}
