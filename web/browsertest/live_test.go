package browsertest_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"pawl/internal/pgtest"
)

// What the reader has under their hands stays through ten live updates: what is focused, what is open, where the page is, what
// is selected, and the very elements that were there.
func TestFocusOpenDetailsAndScrollSurviveTenLiveUpdates(t *testing.T) {
	t.Parallel()
	s := open(t, story(t), "")
	ctx := browser(t)
	do(ctx, t, chromedp.EmulateViewport(1280, 500))
	goTo(ctx, t, s.URL+"/ui/locks/job:settle")
	do(ctx, t, chromedp.Click(chromedp.CSS(`details summary`)), chromedp.Focus(chromedp.CSS(`#refusals a, #tenures a`)))
	eval[any](ctx, t, `document.querySelector('#tenures tbody tr').kept = true; scrollTo(0, 300);
		window.__focus = document.activeElement; window.__range = document.createRange(); __range.selectNodeContents(document.querySelector('h1'));
		getSelection().removeAllRanges(); getSelection().addRange(__range); null`)
	if eval[float64](ctx, t, `window.__top = document.activeElement.getBoundingClientRect().top, scrollY`) == 0 {
		t.Fatal("the page is too short to be scrolled")
	}
	for i := range 10 {
		holder := fmt.Sprintf("worker-%d/live", i)
		s.exec(t, `update pawl.locks set holder = $1 where name = 'job:settle'`, holder)
		wait(ctx, t, fmt.Sprintf(`document.querySelector('#holder').textContent.includes(%q)`, holder))
		got := eval[[]any](ctx, t, `[document.activeElement === window.__focus && document.activeElement.tagName, document.querySelector('details').open,
			Math.abs(document.activeElement.getBoundingClientRect().top - window.__top) < 3, document.querySelector('#tenures tbody tr').kept === true, getSelection().toString()]`)
		if want := fmt.Sprint([]any{"A", true, true, true, "job:settle"}); fmt.Sprint(got) != want {
			t.Fatalf("after update %d: %v, want %s", i+1, got, want)
		}
	}
	noComplaints(ctx, t)
}

// Paused is paused: neither rows nor ages move for five seconds, whatever happens, and not because the window comes back.
func TestPauseStopsThePageForFiveSeconds(t *testing.T) {
	t.Parallel()
	s := open(t, story(t), "")
	ctx := browser(t)
	goTo(ctx, t, s.URL+"/ui/locks")
	do(ctx, t, chromedp.Click(chromedp.CSS(`[data-live]`)))
	eval[any](ctx, t, `window.__moved = 0; new MutationObserver(m => { window.__moved += m.length }).observe(document.getElementById('main'),
		{childList: true, subtree: true, characterData: true, attributes: true}); null`)
	s.exec(t, `update pawl.locks set holder = 'somebody else' where name = 'job:settle'`)
	eval[any](ctx, t, `window.dispatchEvent(new Event('focus')); document.dispatchEvent(new Event('visibilitychange')); null`)
	select {
	case <-time.After(5 * time.Second): // real clock: it is the browser's that is stopped
	case <-t.Context().Done():
	}
	if moved := eval[int](ctx, t, `window.__moved`); moved != 0 {
		t.Errorf("%d changes though the page is paused", moved)
	}
	if button := eval[[]string](ctx, t, `[document.querySelector('[data-live]').textContent.trim(), document.querySelector('[data-live]').getAttribute('aria-pressed')]`); fmt.Sprint(button) != "[Paused false]" {
		t.Errorf("the button says %q", button)
	}
	do(ctx, t, chromedp.Click(chromedp.CSS(`[data-live]`)))
	wait(ctx, t, `document.querySelector('#locks').textContent.includes('somebody else')`)
	noComplaints(ctx, t)
}

// A page that nothing happens on isn't sent again, and says that the server is there; one that went away is said.
func TestAnUnchangedPageAnswersHtmxWith304AndALostServerIsSaid(t *testing.T) {
	t.Parallel()
	// No lease ends while it looks: that would be news.
	s := open(t, story(t)+`; update pawl.locks set expires_at = expires_at + interval '1 h' where expires_at > clock_timestamp()`, "")
	ctx := browser(t)
	goTo(ctx, t, s.URL+"/ui/locks?state=stale")
	pgtest.Eventually(t, 20*time.Second, "three polls are answered 304", func() bool { return s.polled(http.StatusNotModified) >= 3 })
	if n := s.polled(http.StatusOK); n > 1 { // the first poll has no tag yet
		t.Errorf("%d polls got the whole page, want one at most", n)
	}
	if said := text(ctx, t, "[data-live]"); said != "Live" {
		t.Errorf("the button says %q, want Live", said)
	}
	s.srv.CloseClientConnections()
	_ = s.srv.Listener.Close()
	wait(ctx, t, `document.querySelector('[data-live-text]').textContent === 'Offline'`)
}

// A browser opens six connections to an origin over HTTP/1.1: no page may keep one.
func TestEightVisibleTabsAllLoadAndAreRenewed(t *testing.T) {
	t.Parallel()
	s := open(t, story(t), "")
	first := browser(t)
	tabs := []context.Context{first}
	for range 7 {
		tabs = append(tabs, tab(first, t, chromedp.WithNewWindow(true)))
	}
	for i, ctx := range tabs {
		start := time.Now()
		goTo(ctx, t, s.URL+"/ui/locks")
		if d := time.Since(start); d > 6*time.Second {
			t.Errorf("tab %d took %s", i+1, d)
		}
		if eval[string](ctx, t, `document.visibilityState`) != "visible" {
			t.Errorf("tab %d is hidden: this test sees nothing", i+1)
		}
	}
	s.exec(t, `update pawl.locks set holder = 'seen by all' where name = 'job:settle'`)
	for _, ctx := range tabs {
		wait(ctx, t, `document.querySelector('#locks').textContent.includes('seen by all')`)
	}
}

// Everything is below the base: no link, form or file leads out of it, and no page is lost on the way.
func TestBelowABasePathNoLinkFormOrFileLeadsOut(t *testing.T) {
	t.Parallel()
	s := open(t, story(t), "/a/b/")
	ctx := browser(t)
	sent := watch(ctx, t)
	base := s.URL + "/"
	seen, todo := map[string]bool{}, []string{base}
	shapes := map[string]int{}
	for len(todo) > 0 {
		at := todo[0]
		todo = todo[1:]
		res, err := chromedp.RunResponse(ctx, chromedp.Navigate(at))
		if err != nil {
			t.Fatalf("%s: %v", at, err)
		}
		if res.Status >= http.StatusBadRequest {
			t.Errorf("%s, to which a page leads, = %d", at, res.Status)
		}
		for _, u := range eval[[]string](ctx, t, `[...document.querySelectorAll('[href],[src],[action],[data-hx-get]')]
				.filter(e => e.namespaceURI.endsWith('xhtml')).map(e => new URL(e.getAttribute('data-hx-get') || e.href || e.src || e.action, document.baseURI).href)`) {
			u, _, _ = strings.Cut(u, "#")
			if !strings.HasPrefix(u, base) {
				t.Errorf("%s leads out of the base, to %s", at, u)
				continue
			}
			if next := strings.TrimPrefix(u, base); !seen[u] && crawled(shapes, next) {
				seen[u] = true
				todo = append(todo, u)
			}
		}
	}
	if len(seen) < 25 {
		t.Errorf("%d pages were found by links alone", len(seen))
	}
	if out := sent.outside(base); len(out) > 0 {
		t.Errorf("requests out of the base: %q", out)
	}
}

// crawled tells whether an address is a page of a shape that hasn't been seen often: links of a hundred rows are alike.
func crawled(shapes map[string]int, below string) bool {
	path, query, _ := strings.Cut(below, "?")
	r, ok := route(http.MethodGet, "/"+path)
	if !ok || strings.HasPrefix(path, "ui/static/") || strings.HasSuffix(path, ".csv") || strings.Contains(path, "/versions/") { // files
		return false
	}
	values, _ := url.ParseQuery(query)
	shape := r.Pattern
	for name := range values {
		shape += "?" + name
	}
	shapes[shape]++
	return shapes[shape] <= 2
}

// What the script adds is the ticking; everything else is in the HTML.
func TestThePagesWorkWithoutScript(t *testing.T) {
	t.Parallel()
	s := open(t, story(t), "")
	ctx := browser(t)
	do(ctx, t, chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		return err
	}))
	goTo(ctx, t, s.URL+"/ui/locks/job:settle")
	says(ctx, t, "worker-2/4411/9f3c", "1795969942·676573", "of 30s", "worker-1/4409/77d0")
	if shown := eval[bool](ctx, t, `document.querySelector('[data-live]').offsetParent !== null`); shown {
		t.Error("a button that needs the script is shown")
	}
	press(ctx, t, `a[aria-label="Release job:settle"]`)
	do(ctx, t, chromedp.SendKeys(chromedp.CSS("#reason"), "it hangs in a syscall"))
	press(ctx, t, "#submit")
	says(ctx, t, "it hangs in a syscall")
	press(ctx, t, `form[action$="/prefs/theme"] button`)
	if got := eval[string](ctx, t, `document.documentElement.dataset.theme`); got != "dark" {
		t.Errorf("after the switch the theme is %q, want dark", got)
	}
}

// A form of another site reaches the server with the reader's cookie, and does nothing.
func TestAFormOfAnotherSiteDoesNothing(t *testing.T) {
	t.Parallel()
	s := open(t, story(t), "")
	ctx := browser(t)
	before := s.digest(t)
	evil := elsewhereSite(t, `<form method="post" action="`+s.URL+`/ui/jobs/settle/pause"><input name="reason" value="because of a mail"><button id="go">x</button></form>`)
	do(ctx, t, chromedp.Navigate(evil))
	if got := press(ctx, t, "#go"); got != http.StatusForbidden {
		t.Errorf("a form of another site = %d, want 403", got)
	}
	says(ctx, t, "another site")
	if after := s.digest(t); after != before {
		t.Error("a form of another site has changed something")
	}
}

// What was chosen stands in the address and in the form: sent again it is the same address, whatever the reader's zone is.
func TestAFilterThatIsSentAgainIsTheSame(t *testing.T) {
	t.Parallel()
	s := open(t, story(t), "")
	ctx := browser(t)
	for _, zone := range []string{"UTC", "Asia/Kolkata"} {
		goTo(ctx, t, s.URL+"/ui/locks")
		do(ctx, t, chromedp.SetValue(chromedp.CSS("#zone"), zone))
		press(ctx, t, ".zone button")
		if got := get(ctx, t, chromedp.Value(chromedp.CSS("#zone"))); got != zone {
			t.Fatalf("the zone is %q, want %q", got, zone)
		}
		for _, at := range []string{
			"/ui/locks?q=job&state=held", "/ui/audit?actor=kim&from=2026-09-01T08%3A30&to=2026-12-31T00%3A00", "/ui/refusals?lock=job%3Asettle",
			"/ui/runs?job=settle&state=lost&from=2026-09-01&to=2026-12-31",
		} {
			path, chosen, _ := strings.Cut(at, "?")
			if _, ok := route(http.MethodGet, path); !ok {
				t.Fatalf("%s is no page", path)
			}
			goTo(ctx, t, s.URL+at)
			var last string
			for range 3 {
				press(ctx, t, `form[method=get] button`)
				query := eval[string](ctx, t, `[...new URLSearchParams(location.search)].filter(([, v]) => v).map(p => p.join('=')).sort().join('&')`)
				if last != "" && query != last {
					t.Errorf("%s in %s: sent again it is %s, was %s", at, zone, query, last)
				}
				last = query
			}
			if want := eval[string](ctx, t, fmt.Sprintf(`[...new URLSearchParams(%q)].map(p => p.join('=')).sort().join('&')`, chosen)); last != want {
				t.Errorf("%s in %s became %s", want, zone, last)
			}
		}
	}
}
