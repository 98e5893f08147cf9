package ui_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"pawl/web"
)

// browser is a headless Chromium of this test's own. Where there is none the test fails: what only a browser can
// tell (the policy, contrast, width) would otherwise go untested.
func browser(t *testing.T) context.Context {
	t.Helper()
	bin, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatalf("chromium is missing: install it (Debian: apt-get install chromium): %v", err)
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(bin), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-sync", true), chromedp.UserDataDir(t.TempDir()))
	alloc, stop := chromedp.NewExecAllocator(t.Context(), opts...)
	tab, closeTab := chromedp.NewContext(alloc)
	ctx, cancel := context.WithTimeout(tab, 2*time.Minute)
	t.Cleanup(func() { cancel(); closeTab(); stop() })
	steps(ctx, t, chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: `
			window.__bad = [];
			addEventListener('securitypolicyviolation', e => __bad.push('csp ' + e.violatedDirective + ' ' + e.blockedURI));
			addEventListener('error', e => __bad.push('error ' + e.message));
			addEventListener('unhandledrejection', e => __bad.push('rejection ' + e.reason));`})
		return err
	}))
	return ctx
}

func steps(ctx context.Context, t *testing.T, all ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(ctx, all...); err != nil {
		t.Fatal(err)
	}
}

func get[T any](ctx context.Context, t *testing.T, a chromedp.Action[T]) T {
	t.Helper()
	v, err := chromedp.Run(ctx, a)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// theme is what the reader's system prefers.
func theme(scheme string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		})
		return err
	})
}

// noComplaints fails the test for what the browser refused or what a script threw.
func noComplaints(ctx context.Context, t *testing.T) {
	t.Helper()
	if bad := get(ctx, t, chromedp.Evaluate[[]string](`window.__bad`)); len(bad) > 0 {
		t.Errorf("the browser complains: %s", strings.Join(bad, "; "))
	}
}

type violation struct {
	ID, Impact, Help string
	Nodes            []struct{ HTML, FailureSummary string }
}

// wait is a promise in the page that ends when fact, an expression, is true.
func wait(fact string) chromedp.Action[bool] {
	return chromedp.Poll[bool](fact, chromedp.WithPollingTimeout(20*time.Second))
}

// Set PAWL_SCREENSHOTS to a directory to look at what was tested.
func TestThePagesOfLocksAreAccessibleInBothThemesAndAllWidths(t *testing.T) {
	t.Parallel()
	axe, err := os.ReadFile("../testdata/axe-4.14.1.min.js")
	if err != nil {
		t.Fatal(err)
	}
	full, _ := open(t, story, func(c *web.Config) { c.Insecure = true })
	long, _ := open(t, longNames, nil)
	empty, _ := open(t, "select", nil)
	none := fmt.Errorf("away")
	away := serve(t, web.Handler(web.Config{Locks: broken{err: none}, Jobs: broken{err: none}}))
	ctx := browser(t)
	x := strings.Repeat("x", 255)
	for name, url := range map[string]string{
		"overview": full.URL + "/", "overview of long names": long.URL + "/", "overview of nothing": empty.URL + "/", "overview without a database": away.URL + "/",
		"lock": full.URL + "/ui/locks/job:settle?span=6h", "lock of long names": long.URL + "/ui/locks/" + x, "claims": full.URL + "/ui/stale-claims", "claims of long names": long.URL + "/ui/stale-claims",
		"refusals": full.URL + "/ui/refusals", "refusals of long names": long.URL + "/ui/refusals?lock=" + x, "refusals of nothing": empty.URL + "/ui/refusals",
	} {
		for _, scheme := range []string{"light", "dark"} {
			for _, width := range []int64{1280, 390, 320} {
				t.Run(fmt.Sprintf("%s %s %d", name, scheme, width), func(t *testing.T) {
					steps(ctx, t, chromedp.EmulateViewport(width, 900), theme(scheme), chromedp.Navigate(url))
					get(ctx, t, chromedp.Evaluate[any](`document.querySelectorAll('details').forEach(d => { d.open = true }); null`))
					check(ctx, t, string(axe), width)
					if dir := os.Getenv("PAWL_SCREENSHOTS"); dir != "" {
						png := get(ctx, t, chromedp.FullScreenshot(100))
						if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%d-%s.png", name, width, scheme)), png, 0o644); err != nil {
							t.Fatal(err)
						}
					}
				})
			}
		}
	}
}

// longNames has names as long as they may be, without a place to break.
const longNames = `
insert into pawl.locks (name, token, incarnation, grant_id, holder, ttl, acquired_at, renewed_at, expires_at)
values (repeat('x', 255), 9007199254740991, 1, gen_random_uuid(), repeat('h', 200), '24 h', now() - interval '400 d', now(), now() + interval '1 h');
insert into pawl.tenures (lock, token, grant_id, holder, acquired_at, ended_at, how, successor)
values (repeat('x', 255), 9007199254740990, gen_random_uuid(), repeat('h', 200), now(), now(), 'forced', 9007199254740991);
insert into pawl.refusals (lock, token, current, holder, late_by, target, statement)
values (repeat('x', 255), 9007199254740990, 9007199254740991, repeat('h', 200), '400 d', repeat('t', 255), repeat('s', 500));
insert into pawl.refusals (lock, token, current, holder, target, statement, passed, nth)
values (repeat('x', 255), 9007199254740990, 9007199254740991, repeat('h', 200), repeat('t', 255), repeat('s', 500), true, null),
       ('job:x', null, null, null, 'public.ledger', 'UPDATE', true, null);
insert into pawl.runs (id, job, key, revision, attempt, lock, token, holder, state, ended_at, done, total, error)
values (gen_random_uuid(), repeat('j', 200), repeat('k', 200), 1, 1, 'x', 9007199254740991, repeat('h', 200), 'failed', now(),
        9223372036854775807, 9223372036854775807, repeat('e', 2000)),
       (gen_random_uuid(), 'j', '01KB8W7X2V3Q4R5S6T7V8W9XYZ', 1, 1, 'y', 9007199254740991, 'h', 'failed', now(), null, null,
        repeat('long ', 30) || E'\n' || repeat('e', 2000))`

func check(ctx context.Context, t *testing.T, axe string, width int64) {
	t.Helper()
	get(ctx, t, chromedp.Evaluate[any](axe+";null")) // not bound by the page's policy, which stays on
	found := get(ctx, t, chromedp.Evaluate[[]violation](
		`axe.run(document, {runOnly: ['wcag2a','wcag2aa','wcag21a','wcag21aa','wcag22aa','best-practice'], resultTypes: ['violations']}).then(r => r.violations)`,
		chromedp.EvalAwaitPromise, chromedp.EvalAsValue))
	for _, v := range found {
		for _, n := range v.Nodes[:min(3, len(v.Nodes))] {
			t.Errorf("%s (%s): %s\n  %.200s\n  %s", v.ID, v.Impact, v.Help, n.HTML, n.FailureSummary)
		}
	}
	if w := get(ctx, t, chromedp.Evaluate[int64](`document.documentElement.scrollWidth`)); w > width {
		t.Errorf("the page scrolls sideways: %d px wide", w)
	}
	noComplaints(ctx, t)
}

// A new row appears without a reload, while what the reader had stays: focus, place, what is open, and the rows themselves.
func TestThePageRenewsItselfAndKeepsTheReadersPlace(t *testing.T) {
	t.Parallel()
	srv, pool := open(t, story, nil)
	ctx := browser(t)
	steps(ctx, t, chromedp.EmulateViewport(1280, 500), chromedp.Navigate(srv.URL+"/"), chromedp.Focus(chromedp.CSS(`#stale td a.st`)))
	get(ctx, t, chromedp.Evaluate[any](`document.getElementById('w-1').kept = true; document.querySelector('#timeline details').open = true; scrollTo(0, 300); null`))
	for n := 2; n < 5; n++ {
		const more = `insert into pawl.refusals (lock, token, current, holder, target) values ('job:x', 1, 2, 'old', 't')`
		if _, err := pool.Exec(t.Context(), more); err != nil {
			t.Fatal(err)
		}
		get(ctx, t, wait(fmt.Sprintf(`document.getElementById('w-%d') !== null`, n)))
	}
	got := get(ctx, t, chromedp.Evaluate[[]any](`[document.activeElement.textContent, scrollY, document.getElementById('w-1').kept === true,
		document.querySelectorAll('#refusals tbody tr').length, document.querySelector('#refusals tbody tr').id, document.querySelector('#timeline details').open]`))
	if want := "[1 write refused 300 true 4 w-4 true]"; fmt.Sprint(got) != want {
		t.Errorf("after the renewals: %v, want %s", got, want)
	}
	noComplaints(ctx, t)
}

// Paused is paused, and a server that went away is said.
func TestThePagePausesAndSaysThatItIsOffline(t *testing.T) {
	t.Parallel()
	srv, _ := open(t, story, nil)
	ctx := browser(t)
	left := `document.querySelector('#holders [data-num]').textContent`
	steps(ctx, t, chromedp.Navigate(srv.URL+"/"), chromedp.Click(chromedp.CSS(`[data-live]`)))
	before := get(ctx, t, chromedp.Evaluate[string](left))
	get(ctx, t, chromedp.Evaluate[any](`window.__later = false; setTimeout(() => { window.__later = true }, 2500); null`))
	get(ctx, t, wait(`window.__later`))
	if after := get(ctx, t, chromedp.Evaluate[string](left)); after != before {
		t.Errorf("time left went from %s to %s though the page is paused", before, after)
	}
	if text := get(ctx, t, chromedp.Text(chromedp.CSS(`[data-live]`))); text != "Paused" {
		t.Errorf("the button says %q, want Paused", text)
	}
	steps(ctx, t, chromedp.Click(chromedp.CSS(`[data-live]`)))
	srv.CloseClientConnections()
	_ = srv.Listener.Close()
	get(ctx, t, wait(`document.querySelector('[data-live-text]').textContent === 'Offline'`))
}

// What the script adds is the ticking; everything else is in the HTML.
func TestThePageWorksWithoutScript(t *testing.T) {
	t.Parallel()
	srv, _ := open(t, story, nil)
	ctx := browser(t)
	steps(ctx, t, chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		return err
	}), chromedp.Navigate(srv.URL+"/"))
	text := get(ctx, t, chromedp.Text(chromedp.CSS(`body`)))
	for _, want := range []string{"worker-2/4411/9f3c", "1795969942·676573", "of 30s", "Nobody yet", "1 write refused", "Load the page again"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if shown := get(ctx, t, chromedp.Evaluate[bool](`document.querySelector('[data-live]').offsetParent !== null`)); shown {
		t.Error("a button that needs the script is shown")
	}
}
