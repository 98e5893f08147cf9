package browsertest_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/jackc/pgx/v5"

	"pawl/fence"
	"pawl/lockrepo"
	"pawl/lockrepo/keys"
	"pawl/web/ui"
)

// text is what a part of the page says.
func text(ctx context.Context, t *testing.T, css string) string {
	t.Helper()
	return get(ctx, t, chromedp.Text(chromedp.CSS(css)))
}

// says fails the test for each text that the page lacks.
func says(ctx context.Context, t *testing.T, texts ...string) {
	t.Helper()
	body := text(ctx, t, "main")
	for _, want := range texts {
		if !strings.Contains(body, want) {
			t.Errorf("%s lacks %q", get(ctx, t, chromedp.Location()), want)
		}
	}
}

// two people are signed in in two browsers; each may ask and approve.
func two(t *testing.T, s *shop) (kim, lee context.Context) {
	t.Helper()
	kim, lee = browser(t), browser(t)
	s.signIn(kim, t, s.key(t, keys.Key{Name: "kim", Role: keys.Operator, Approver: true}))
	s.signIn(lee, t, s.key(t, keys.Key{Name: "lee", Role: keys.Operator, Approver: true}))
	return kim, lee
}

// From the page of a lock to the old holder's refused write, all by clicks.
func TestTwoPeopleReleaseALeaseAndItsOldHoldersWriteIsRefusedOnThePage(t *testing.T) {
	t.Parallel()
	s := open(t, "create table ledger (n int)", "")
	kim, lee := two(t, s)
	old, err := s.Locks.Acquire(t.Context(), "ledger close", 0)
	if err != nil {
		t.Fatal(err)
	}
	write := func(ctx context.Context) error {
		return fence.Do(ctx, s.Pool, old.Token, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "insert into ledger values (1)")
			return err
		})
	}
	if err := write(t.Context()); err != nil {
		t.Fatal(err)
	}

	goTo(kim, t, s.URL+"/ui/locks/ledger%20close")
	press(kim, t, `a[aria-label="Release ledger close"]`)
	says(kim, t, fence.FormatSeq(old.Token.Seq), "worker-9/1/test", "cannot approve your own request")
	do(kim, t, chromedp.SendKeys(chromedp.CSS("#reason"), "too short"))
	if got := press(kim, t, "#submit"); got != http.StatusUnprocessableEntity {
		t.Errorf("a reason of nine characters = %d, want 422", got)
	}
	if kept := get(kim, t, chromedp.Value(chromedp.CSS("#reason"))); kept != "too short" {
		t.Errorf("the reason is %q after it was refused: what was typed is lost", kept)
	}
	if shown := eval[string](kim, t, `document.querySelector('[role=alert]').textContent + document.querySelector('#reason').getAttribute('aria-invalid')`); !strings.HasSuffix(shown, "true") {
		t.Errorf("the refusal is not said beside the field: %q", shown)
	}
	do(kim, t, chromedp.SendKeys(chromedp.CSS("#reason"), ": it hangs in a syscall"))
	press(kim, t, "#submit")
	says(kim, t, "it hangs in a syscall", "You cannot approve your own request")
	if n := eval[int](kim, t, `document.querySelectorAll('[name=decision][value=approve]').length`); n != 0 {
		t.Error("who asked is offered to approve")
	}
	if err := write(t.Context()); err != nil {
		t.Errorf("nobody has approved yet, and the holder's write = %v", err)
	}

	goTo(lee, t, s.URL+"/")
	wait(lee, t, `document.querySelector('main').textContent.includes('ledger close')`) // what is shown is up to a second old
	goTo(lee, t, s.URL+"/ui/approvals")
	press(lee, t, `#requests a`)
	says(lee, t, "kim", "it hangs in a syscall")
	press(lee, t, `[name=decision][value=approve]`)
	says(lee, t, "approved", "lee")

	if _, err := s.Locks.AcquireRequest(t.Context(), lockrepo.Request{Lock: "ledger close", Holder: "worker-10/2/next"}); err != nil {
		t.Fatal(err)
	}
	if err := write(t.Context()); !errors.Is(err, fence.ErrStale) {
		t.Fatalf("the old holder's write = %v, want ErrStale", err)
	}
	goTo(lee, t, s.URL+"/ui/locks/ledger%20close")
	wait(lee, t, `document.querySelector('#refusals tbody tr') !== null`)
	says(lee, t, "released by force", "worker-10/2/next")
	goTo(kim, t, s.URL+"/ui/refusals?lock=ledger+close")
	says(kim, t, "worker-9/1/test", fence.FormatSeq(old.Token.Seq))
	goTo(kim, t, s.URL+"/ui/audit?lock=ledger+close")
	says(kim, t, "kim", "lee", "it hangs in a syscall")
	for _, ctx := range []context.Context{kim, lee} {
		noComplaints(ctx, t)
	}
}

// A form that was made for another holder's token releases nothing, and says what has changed.
func TestAFormForAnOlderTokenIsRefusedAndReleasesNothing(t *testing.T) {
	t.Parallel()
	s := open(t, "select", "")
	kim, lee := two(t, s)
	old, err := s.Locks.Acquire(t.Context(), "x", 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, ctx := range []context.Context{kim, lee} {
		goTo(ctx, t, s.URL+"/ui/locks/x/release")
		do(ctx, t, chromedp.SendKeys(chromedp.CSS("#reason"), "it hangs in a syscall"))
	}
	press(lee, t, "#submit")
	request := get(lee, t, chromedp.Location())
	if err := s.Locks.Release(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	next, err := s.Locks.Acquire(t.Context(), "x", 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := press(kim, t, "#submit"); got != http.StatusConflict {
		t.Errorf("a form for the old token = %d, want 409", got)
	}
	says(kim, t, "changed", fence.FormatSeq(old.Token.Seq))
	goTo(kim, t, request)
	if n := eval[int](kim, t, `document.querySelectorAll('[value=approve]').length`); n == 1 { // it may have been found stale already
		if got := press(kim, t, `[name=decision][value=approve]`); got != http.StatusConflict {
			t.Errorf("an approval for the old token = %d, want 409", got)
		}
	}
	if err := fence.Do(t.Context(), s.Pool, next.Token, func(pgx.Tx) error { return nil }); err != nil {
		t.Errorf("the new holder's lease has ended: %v", err)
	}
}

// A reader's pages lead to nothing that changes something, and what is sent all the same is refused: by the table of routes.
func TestAReaderSeesAndCanDoNothingThatWrites(t *testing.T) {
	t.Parallel()
	s, _, reader := busy(t)
	ctx := browser(t)
	s.signIn(ctx, t, reader)
	acts := actions(t)
	if len(acts) < 10 {
		t.Errorf("%d routes act: is the pattern right?", len(acts))
	}
	for _, address := range pages(t) {
		do(ctx, t, chromedp.Navigate(s.here(t, address)))
		forms := eval[[]string](ctx, t, `[...document.querySelectorAll('form')].filter(f => f.method === 'post').map(f => new URL(f.action).pathname)`)
		for _, f := range forms {
			if f != "/ui/prefs/theme" && f != "/ui/prefs/zone" && f != "/ui/sign-out" && f != "/ui/sign-in" {
				t.Errorf("%s offers a reader the form %s", address, f)
			}
		}
		for _, path := range eval[[]string](ctx, t, `[...document.querySelectorAll('a[href]')].map(a => new URL(a.href).pathname).filter(p => p !== location.pathname)`) {
			if r, ok := route(http.MethodPost, path); ok && r.Acts && !r.Decides {
				t.Errorf("%s leads a reader to %s", address, path)
			}
		}
		if body := eval[string](ctx, t, `document.documentElement.innerHTML`); strings.Contains(body, "payload-of-the-shop") {
			t.Errorf("%s shows a reader a checkpoint", address)
		}
	}
	before := s.digest(t)
	for _, path := range acts {
		status := get(ctx, t, chromedp.Evaluate[int](`fetch(`+strconv.Quote(path)+`, {method: 'POST', body: new URLSearchParams('reason=because+I+can&token=1795969942676573&decision=approve')}).then(r => r.status)`,
			chromedp.EvalAwaitPromise))
		if status != http.StatusForbidden {
			t.Errorf("POST %s by a reader = %d, want 403", path, status)
		}
	}
	if after := s.digest(t); after != before {
		t.Errorf("a reader has changed something:\n%s\n%s", before, after)
	}
}

// digest is of all that people may change.
func (s *shop) digest(t *testing.T) (sum string) {
	t.Helper()
	const sql = `
select concat_ws(' ', (select md5(string_agg(l::text, ',' order by name)) from pawl.locks l), (select md5(string_agg(s::text, ',' order by job)) from pawl.schedules s),
       (select md5(string_agg(p::text, ',' order by job, key, revision)) from pawl.periods p), (select count(*) from pawl.audit), (select count(*) from pawl.approvals),
       (select string_agg(state, ',' order by id) from pawl.approvals), (select count(*) from pawl.keys where revoked_at is null))`
	if err := s.Pool.QueryRow(t.Context(), sql).Scan(&sum); err != nil {
		t.Fatal(err)
	}
	return sum
}

// actions are the paths of everything that changes something.
func actions(t *testing.T) (paths []string) {
	t.Helper()
	for _, r := range ui.Routes() {
		if !r.Acts || r.Method == http.MethodGet {
			continue
		}
		examples := addresses[r.Pattern]
		if len(examples) == 0 {
			t.Errorf("POST %s has no example address", r.Pattern)
			continue
		}
		path, _, _ := strings.Cut(examples[0], "?")
		paths = append(paths, (&url.URL{Path: path}).EscapedPath())
	}
	return paths
}

// route is the row of the table that serves a path.
func route(method, path string) (ui.Route, bool) {
	have := strings.Split(path, "/")
	for _, r := range ui.Routes() {
		want := strings.Split(r.Pattern, "/")
		if r.Method != method || len(want) != len(have) {
			continue
		}
		same := true
		for i, w := range want {
			same = same && (w == have[i] || strings.HasPrefix(w, "{"))
		}
		if same {
			return r, true
		}
	}
	return ui.Route{}, false
}
