package web_test

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
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
	do(ctx, t, chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: `
			window.__bad = [];
			addEventListener('securitypolicyviolation', e => __bad.push('csp ' + e.violatedDirective + ' ' + e.blockedURI));
			addEventListener('error', e => __bad.push('error ' + e.message));
			addEventListener('unhandledrejection', e => __bad.push('rejection ' + e.reason));`})
		return err
	}))
	return ctx
}

func do(ctx context.Context, t *testing.T, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(ctx, steps...); err != nil {
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
