package browsertest_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// browser is a headless Chromium of this test's own, with nobody signed in. Where there is none the test fails: what only a
// browser can tell would otherwise go untested.
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
	ctx, cancel := context.WithTimeout(alloc, 4*time.Minute)
	t.Cleanup(func() { cancel(); stop() })
	return tab(ctx, t)
}

// tab is another tab of a browser, in which whatever the page complains about is noted from the first byte.
func tab(browser context.Context, t *testing.T, opts ...chromedp.ContextOption) context.Context {
	t.Helper()
	ctx, closeTab := chromedp.NewContext(browser, opts...)
	t.Cleanup(closeTab)
	// The browser lives as long as the context of its first step: not one of do's.
	err := chromedp.Do(ctx, chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: `
			window.__bad = [];
			addEventListener('securitypolicyviolation', e => __bad.push('csp ' + e.violatedDirective + ' ' + e.blockedURI));
			addEventListener('error', e => __bad.push('error ' + e.message), true);
			addEventListener('unhandledrejection', e => __bad.push('rejection ' + e.reason));`})
		return err
	}))
	if err != nil {
		t.Fatal(err)
	}
	return ctx
}

// patience is how long one step may take: what never comes is said where it is waited for.
const patience = 30 * time.Second

func do(ctx context.Context, t *testing.T, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		t.Fatal(err)
	}
}

func get[T any](ctx context.Context, t *testing.T, a chromedp.Action[T]) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, a)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// eval is the value of an expression in the page.
func eval[T any](ctx context.Context, t *testing.T, js string) T {
	t.Helper()
	return get(ctx, t, chromedp.Evaluate[T](js))
}

// wait ends when fact, an expression in the page, is true.
func wait(ctx context.Context, t *testing.T, fact string) {
	t.Helper()
	if _, err := chromedp.Run(ctx, chromedp.Poll[bool](fact, chromedp.WithPollingTimeout(20*time.Second))); err != nil {
		t.Fatalf("%s: %v", fact, err)
	}
}

// goTo loads an address and waits until the page is there.
func goTo(ctx context.Context, t *testing.T, url string) {
	t.Helper()
	do(ctx, t, chromedp.Navigate(url), chromedp.WaitReady(chromedp.CSS("#main")))
}

// press clicks and waits for the page that follows; it answers that page's status.
func press(ctx context.Context, t *testing.T, css string) int64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	res, err := chromedp.RunResponse(ctx, chromedp.Click(chromedp.CSS(css)))
	if err != nil {
		t.Fatalf("%s: %v", css, err)
	}
	return res.Status
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

// noComplaints fails the test for what the browser refused, for what a script threw, and for what was loaded from elsewhere.
func noComplaints(ctx context.Context, t *testing.T) {
	t.Helper()
	if bad := eval[[]string](ctx, t, `window.__bad`); len(bad) > 0 {
		t.Errorf("the browser complains: %s", strings.Join(bad, "; "))
	}
}

// watch notes each request that a tab sends, until the test ends.
func watch(ctx context.Context, t *testing.T) *requests {
	t.Helper()
	r := &requests{}
	if err := chromedp.Listen(ctx, r.note); err != nil {
		t.Fatal(err)
	}
	do(ctx, t, chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, network.Enable, network.EnableParams{})
		return err
	}))
	return r
}

func axe(t *testing.T) string {
	t.Helper()
	js, err := os.ReadFile("testdata/axe-4.14.1.min.js")
	if err != nil {
		t.Fatal(err)
	}
	return string(js) + ";null"
}
