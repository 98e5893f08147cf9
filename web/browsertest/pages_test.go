package browsertest_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"pawl/internal/pgtest"
	"pawl/jobs"
	"pawl/lockrepo"
	"pawl/lockrepo/approvals"
	"pawl/lockrepo/keys"
	"pawl/web"
	"pawl/web/ui"
)

const run = "00000000-0000-4000-8000-000000000005"

// addresses are examples of each page, below the base. A page that is served and has none here fails the test below.
var addresses = map[string][]string{
	"/":                                       {"/"},
	"/ui/static/{hash}/{file}":                nil, // loaded by the others
	"/ui/audit.csv":                           nil, // no page
	"/ui/sign-in":                             {"/ui/sign-in"},
	"/ui/locks":                               {"/ui/locks", "/ui/locks?state=stale&q=nobody"},
	"/ui/locks/{name}":                        {"/ui/locks/job:settle", "/ui/locks/" + long},
	"/ui/locks/{name}/release":                {"/ui/locks/ledger-close/release"},
	"/ui/stale-claims":                        {"/ui/stale-claims"},
	"/ui/refusals":                            {"/ui/refusals", "/ui/refusals?lock=nobody"},
	"/ui/jobs":                                {"/ui/jobs"},
	"/ui/jobs/{job}":                          {"/ui/jobs/settle"},
	"/ui/jobs/pause":                          {"/ui/jobs/pause"},
	"/ui/jobs/resume":                         {"/ui/jobs/resume"},
	"/ui/jobs/{job}/pause":                    {"/ui/jobs/settle/pause"},
	"/ui/jobs/{job}/resume":                   {"/ui/jobs/invoices/resume"},
	"/ui/jobs/{job}/run":                      {"/ui/jobs/settle/run"},
	"/ui/jobs/{job}/retry":                    {"/ui/jobs/settle/retry"},
	"/ui/jobs/{job}/backfill":                 {"/ui/jobs/settle/backfill", "/ui/jobs/settle/backfill?from=2026-09-01&to=2026-09-05"},
	"/ui/periods":                             {"/ui/periods"},
	"/ui/periods/{job}":                       {"/ui/periods/settle"},
	"/ui/periods/{job}/{key}":                 {"/ui/periods/settle/2026-09-16"},
	"/ui/periods/{job}/{key}/rerun":           {"/ui/periods/settle/2026-09-15/rerun"},
	"/ui/periods/{job}/{key}/retry":           {"/ui/periods/invoices/2026-09-16/retry"},
	"/ui/periods/{job}/{key}/cancel":          {"/ui/periods/settle/2026-09-17/cancel"},
	"/ui/effects":                             {"/ui/effects", "/ui/effects?state=uncertain&job=nobody", "/ui/effects?state=unmatched"},
	"/ui/effects/{id}/decide":                 {"/ui/effects/1/decide"},
	"/ui/outbox":                              {"/ui/outbox", "/ui/outbox?state=waiting", "/ui/outbox?key=nobody"},
	"/ui/outbox/{job}/{key}/retry":            {"/ui/outbox/mail/01KB8W7X2V3Q4R5S6T7V8W9XYZ/retry"},
	"/ui/outbox/{job}/{key}/drop":             {"/ui/outbox/mail/01KB8W7X2V3Q4R5S6T7V8W9XYZ/drop"},
	"/ui/artifacts/{name}/versions/{version}": nil, // no page
	"/ui/artifacts":                           {"/ui/artifacts", "/ui/artifacts?q=nobody"},
	"/ui/artifacts/{name}":                    {"/ui/artifacts/statements%2Facme.csv"},
	"/ui/runs":                                {"/ui/runs", "/ui/runs?state=failed"},
	"/ui/runs/{id}":                           {"/ui/runs/" + run, "/ui/runs/00000000-0000-4000-8000-000000000006", "/ui/runs/00000000-0000-4000-8000-000000000007"},
	"/ui/queue":                               {"/ui/queue"},
	"/ui/approvals":                           {"/ui/approvals", "/ui/approvals?state=all"},
	"/ui/approvals/{id}":                      {"/ui/approvals/1"},
	"/ui/audit":                               {"/ui/audit"},
	"/ui/keys":                                {"/ui/keys"},
	"/ui/keys/create":                         {"/ui/keys/create"},
	"/ui/keys/{id}/revoke":                    {"/ui/keys/{key}/revoke"},
}

var long = strings.Repeat("x", 255)

// elsewhere are pages that the pages' own table doesn't have, and what goes wrong.
var elsewhere = []string{"/docs", "/ui/nothing", "/ui/locks/nobody", "/ui/locks?state=lost"}

// pages are the addresses to look at, from the table of routes.
func pages(t *testing.T) (all []string) {
	t.Helper()
	for _, r := range ui.Routes() {
		if r.Method != http.MethodGet {
			continue
		}
		examples, ok := addresses[r.Pattern]
		if !ok {
			t.Errorf("%s has no example address: add one to the table, so that a browser looks at it", r.Pattern)
		}
		all = append(all, examples...)
	}
	return append(all, elsewhere...)
}

// busy is a shop with two people, of whom one has asked for a release.
func busy(t *testing.T) (s *shop, operator, reader string) {
	t.Helper()
	s = open(t, story(t), "")
	operator = s.key(t, keys.Key{Name: "kim", Role: keys.Operator, Approver: true})
	reader = s.key(t, keys.Key{Name: "support", Role: keys.Reader})
	asker, k, err := s.Keys.Create(t.Context(), keys.Key{Name: strings.Repeat("n", 100), Role: keys.Operator, CreatedBy: "test"})
	if err != nil || asker == "" {
		t.Fatal(err)
	}
	_, err = s.Asked.RequestRelease(t.Context(), approvals.Release{
		Lock: "job:settle", Token: 1795969942676573, Reason: "the holder hangs since " + strings.Repeat("s", 300), Kill: true, By: approvals.Person{ID: k.ID, Name: k.Name},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s, operator, reader
}

// here is an address with what only this database knows.
func (s *shop) here(t *testing.T, address string) string {
	t.Helper()
	if !strings.Contains(address, "{key}") {
		return s.URL + address
	}
	all, err := s.Keys.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s.URL + strings.ReplaceAll(address, "{key}", all[0].ID)
}

// Set PAWL_SCREENSHOTS to a directory to look at what was tested.
func TestEveryPageIsAccessibleInBothThemesAndAllWidths(t *testing.T) {
	t.Parallel()
	s, operator, reader := busy(t)
	all := pages(t)
	t.Run("operator", func(t *testing.T) { lookAt(t, s, operator, all) })
	t.Run("reader", func(t *testing.T) {
		lookAt(t, s, reader, []string{"/", "/ui/locks/job:settle", "/ui/jobs/settle", "/ui/runs/" + run})
	})
	t.Run("nobody", func(t *testing.T) { lookAt(t, s, "", []string{"/ui/sign-in", "/"}) })
}

func TestEveryPageOfAnEmptyDatabaseIsAccessible(t *testing.T) {
	t.Parallel()
	s := open(t, "select", "")
	lookAt(t, s, "", []string{"/", "/ui/locks", "/ui/stale-claims", "/ui/refusals", "/ui/jobs", "/ui/runs", "/ui/queue", "/ui/approvals", "/ui/audit", "/ui/keys", "/ui/outbox", "/ui/effects?state=unmatched", "/ui/artifacts"})
}

// The pages of a server without a sign-in have a warning; those without a database say that there is none.
func TestPagesThatWarnAndPagesWithoutADatabaseAreAccessible(t *testing.T) {
	t.Parallel()
	s := open(t, story(t), "")
	bare := &shop{}
	bare.serve(t, web.Config{Locks: s.Locks, Jobs: jobs.NewHistory(s.Pool), API: s.Locks, Keys: s.Keys, Insecure: true})
	lookAt(t, bare, "", []string{"/", "/ui/locks", "/docs"})
	away := &shop{}
	gone := pgtest.Open(t, pgtest.URL(t))
	gone.Close()
	locks, err := lockrepo.New(lockrepo.Config{Pool: gone})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(locks.Close)
	away.serve(t, web.Config{Locks: locks, Jobs: jobs.NewHistory(gone)})
	lookAt(t, away, "", []string{"/", "/ui/locks", "/ui/runs"})
}

// lookAt goes to each address in both themes and all widths, as one person.
func lookAt(t *testing.T, s *shop, bearer string, all []string) {
	t.Helper()
	ctx := browser(t)
	sent := watch(ctx, t)
	if bearer != "" {
		s.signIn(ctx, t, bearer)
	}
	rules := axe(t)
	for _, address := range all {
		t.Run(address, func(t *testing.T) {
			do(ctx, t, chromedp.EmulateViewport(1280, 900), theme("light"), chromedp.Navigate(s.here(t, address)))
			eval[any](ctx, t, rules)  // not bound by the page's policy, which stays on
			said := map[string]bool{} // the same complaint in another theme is the same
			for _, width := range []int64{1280, 390, 320} {
				for _, scheme := range []string{"light", "dark"} {
					do(ctx, t, chromedp.EmulateViewport(width, 900), theme(scheme))
					check(ctx, t, said, scheme, width)
					shoot(ctx, t, address, scheme, width)
				}
			}
			noComplaints(ctx, t)
		})
	}
	if out := sent.outside(s.srv.URL + "/"); len(out) > 0 {
		t.Errorf("requests to elsewhere: %q", out)
	}
	if sent.count() < len(all) {
		t.Errorf("%d requests of %d pages were seen: is the watch right?", sent.count(), len(all))
	}
}

type violation struct {
	ID, Impact, Help string
	Nodes            []struct{ HTML, FailureSummary string }
}

func check(ctx context.Context, t *testing.T, said map[string]bool, scheme string, width int64) {
	t.Helper()
	found := get(ctx, t, chromedp.Evaluate[[]violation](
		`axe.run(document, {runOnly: ['wcag2a','wcag2aa','wcag21a','wcag21aa','wcag22aa','best-practice'], resultTypes: ['violations']}).then(r => r.violations)`,
		chromedp.EvalAwaitPromise, chromedp.EvalAsValue))
	for _, v := range found {
		for _, n := range v.Nodes[:min(3, len(v.Nodes))] {
			if said[v.ID+n.HTML] {
				continue
			}
			said[v.ID+n.HTML] = true
			t.Errorf("%s %d: %s (%s): %s\n  %.200s\n  %s", scheme, width, v.ID, v.Impact, v.Help, n.HTML, n.FailureSummary)
		}
	}
	if w := eval[int64](ctx, t, `document.documentElement.scrollWidth`); w > width && !said["sideways"] {
		said["sideways"] = true
		t.Errorf("%s %d: the page scrolls sideways: it is %d px wide, by %s", scheme, width, w, eval[string](ctx, t, widest))
	}
}

// widest is what reaches furthest to the right.
const widest = `(() => { let far = 0, what = ''; for (const e of document.querySelectorAll('body *')) { const r = e.getBoundingClientRect().right;
	if (r > far) { far = r; what = e.outerHTML.slice(0, 150); } } return what; })()`

func shoot(ctx context.Context, t *testing.T, address, scheme string, width int64) {
	t.Helper()
	dir := os.Getenv("PAWL_SCREENSHOTS")
	if dir == "" {
		return
	}
	name := strings.Trim(strings.Map(func(r rune) rune {
		if strings.ContainsRune("/?&=:{}<>", r) {
			return '_'
		}
		return r
	}, fmt.Sprintf("%.60s", address)), "_")
	png := get(ctx, t, chromedp.FullScreenshot(100))
	if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%d-%s.png", name, width, scheme)), png, 0o600); err != nil {
		t.Fatal(err)
	}
}
