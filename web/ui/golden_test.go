package ui_test

import (
	"bytes"
	"flag"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pawl/lockrepo/keys"
	"pawl/web/ui"
)

var update = flag.Bool("update", false, "write testdata/golden as the pages are")

// golden are the pages that are kept, by the pattern of their route: an example of each. A page that isn't here fails
// TestEveryPageIsGolden.
var golden = map[string]string{
	"/":                                       "/",
	"/ui/sign-in":                             "/ui/sign-in?next=%2Fui%2Flocks",
	"/ui/locks":                               "/ui/locks",
	"/ui/locks/{name}":                        "/ui/locks/%3Cscript%3Ealert(%22x%22)%3C%2Fscript%3E",
	"/ui/locks/{name}/release":                "/ui/locks/%3Cscript%3E/release",
	"/ui/stale-claims":                        "/ui/stale-claims",
	"/ui/refusals":                            "/ui/refusals",
	"/ui/jobs":                                "/ui/jobs",
	"/ui/jobs/{job}":                          "/ui/jobs/%3Cscript%3E",
	"/ui/jobs/pause":                          "/ui/jobs/pause",
	"/ui/jobs/resume":                         "/ui/jobs/resume",
	"/ui/jobs/{job}/pause":                    "/ui/jobs/%3Cscript%3E/pause",
	"/ui/jobs/{job}/resume":                   "/ui/jobs/%3Cscript%3E/resume",
	"/ui/jobs/{job}/run":                      "/ui/jobs/%3Cscript%3E/run",
	"/ui/jobs/{job}/backfill":                 "/ui/jobs/%3Cscript%3E/backfill",
	"/ui/jobs/{job}/retry":                    "/ui/jobs/%3Cscript%3E/retry",
	"/ui/periods":                             "/ui/periods",
	"/ui/periods/{job}":                       "/ui/periods/%3Cscript%3E",
	"/ui/periods/{job}/{key}":                 "/ui/periods/%3Cscript%3E/2026-09-16",
	"/ui/periods/{job}/{key}/rerun":           "/ui/periods/%3Cscript%3E/2026-09-16/rerun",
	"/ui/periods/{job}/{key}/retry":           "/ui/periods/%3Cscript%3E/2026-09-16/retry",
	"/ui/periods/{job}/{key}/cancel":          "/ui/periods/%3Cscript%3E/2026-09-16/cancel",
	"/ui/effects":                             "/ui/effects",
	"/ui/effects/{id}/decide":                 "/ui/effects/1/decide",
	"/ui/outbox":                              "/ui/outbox",
	"/ui/outbox/{job}/{key}/retry":            "/ui/outbox/%3Cscript%3E/01KB8W/retry",
	"/ui/outbox/{job}/{key}/drop":             "/ui/outbox/%3Cscript%3E/01KB8W/drop",
	"/ui/artifacts":                           "/ui/artifacts",
	"/ui/artifacts/{name}":                    "/ui/artifacts/%3Cscript%3E%2Fx",
	"/ui/runs":                                "/ui/runs",
	"/ui/artifacts/{name}/versions/{version}": "", // no page
	"/ui/runs/{id}":                           "/ui/runs/00000000-0000-4000-8000-000000000005",
	"/ui/queue":                               "/ui/queue",
	"/ui/approvals":                           "/ui/approvals?state=all",
	"/ui/approvals/{id}":                      "/ui/approvals/1",
	"/ui/audit":                               "/ui/audit",
	"/ui/audit.csv":                           "", // no page
	"/ui/keys":                                "/ui/keys",
	"/ui/keys/create":                         "/ui/keys/create",
	"/ui/keys/{id}/revoke":                    "/ui/keys/abcdefghijkl/revoke",
	"/ui/static/{hash}/{file}":                "", // no page
}

// zones that a process may run in: the pages are the same in all of them.
const processZone = "PAWL_TEST_PROCESS_ZONE"

// Each page of the worst names that there may be, of rows whose ends are not known, and of no rows at all.
func TestEveryPageIsGolden(t *testing.T) {
	t.Parallel()
	if zone := os.Getenv(processZone); zone != "" {
		if got, want := when.In(time.Local).String(), must(when.In(must(time.LoadLocation(zone))).MarshalText()); !strings.HasPrefix(got, strings.Replace(string(want[:19]), "T", " ", 1)) {
			t.Fatalf("this process says %s, want that of %s", got, zone)
		}
	}
	for _, r := range ui.Routes() {
		if r.Method != http.MethodGet {
			continue
		}
		at, ok := golden[r.Pattern]
		if !ok {
			t.Errorf("%s has no golden page: add an address to the table, and run with -update", r.Pattern)
		}
		if at == "" {
			continue
		}
		name := strings.Trim(strings.NewReplacer("/ui/", "", "/", "_", "{", "", "}", "").Replace(r.Pattern), "_")
		if name == "" {
			name = "overview"
		}
		t.Run(name, func(t *testing.T) {
			compare(t, name, shown(t, world{}, at, ""))
			if !r.Acts && r.Pattern != "/ui/sign-in" {
				compare(t, name+".empty", shown(t, world{empty: true}, at, ""))
			}
		})
	}
	compare(t, "effects.unmatched", shown(t, world{}, "/ui/effects?state=unmatched", ""))
	compare(t, "effects.unmatched.empty", shown(t, world{empty: true}, "/ui/effects?state=unmatched", ""))
	compare(t, "outbox.waiting", shown(t, world{}, "/ui/outbox?state=waiting", ""))
	compare(t, "locks.kolkata", shown(t, world{}, "/ui/locks", "Asia/Kolkata"))
	compare(t, "job.kolkata", shown(t, world{}, "/ui/jobs/x", "Asia/Kolkata"))
}

// A list that is cut says so and leads on, and is no longer for ten times the rows.
func TestEveryListThatIsCutSaysSoAndLeadsOn(t *testing.T) {
	t.Parallel()
	lists := 0
	for pattern, at := range golden {
		if !routed(pattern) || at == "" {
			continue
		}
		few, many := shown(t, world{least: 300}, at, ""), shown(t, world{least: 3000}, at, "")
		if len(many) > len(few)+len(few)/100 { // figures grow
			t.Errorf("%s has %d bytes of 300 rows and %d of 3000", at, len(few), len(many))
		}
		if len(many) > 1<<20 { // of the longest names
			t.Errorf("%s has %d KB", at, len(many)>>10)
		}
		if strings.Contains(few, `rel="next"`) {
			lists++
		} else if strings.Count(few, "<tr") > 90 && !strings.Contains(few, `class="cut"`) {
			t.Errorf("%s shows some of its rows and doesn't say so", at)
		}
		if strings.Contains(shown(t, world{}, at, ""), `rel="next"`) {
			t.Errorf("%s leads on though there is no more", at)
		}
	}
	if lists < 6 {
		t.Errorf("%d lists lead on", lists)
	}
}

func routed(pattern string) bool {
	return slices.ContainsFunc(ui.Routes(), func(r ui.Route) bool { return r.Pattern == pattern && r.Method == http.MethodGet })
}

// shown is what an operator sees at an address, in a bubble whose time stands still.
func shown(t *testing.T, w world, at, zone string) (body string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := ui.New(ui.Config{
			Locks: w, Jobs: w, Approvals: asked{w}, Keys: keyring{w}, Acts: struct{ ui.Acts }{}, Artifacts: struct{ ui.Artifacts }{}, Database: "orders", Version: "test",
			Logger: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})),
			Who: func(*http.Request) (ui.User, error) {
				return ui.User{ID: "abcdefghijkl", Name: script, Role: keys.Operator, Approver: true, SignedIn: true}, nil
			},
			SignIn: func(*http.Request, string) (*http.Cookie, error) { return nil, ui.ErrSignIn },
		})
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, at, nil)
		if zone != "" {
			r.AddCookie(&http.Cookie{Name: "pawl_zone", Value: zone})
		}
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		body = rec.Body.String()
		if rec.Code >= http.StatusInternalServerError {
			t.Errorf("%s = %d", at, rec.Code)
		}
		sane(t, at, body)
	})
	return body
}

// never is what no page may say: a name that became markup, or a Go value that nobody has turned into words.
var never = regexp.MustCompile(`(?i)<script>|<img src=x|<nil>|%!\w?\(|0001-01-01|\bNaN\b|ZgotmplZ|\+Inf`)

func sane(t *testing.T, at, body string) {
	t.Helper()
	if bad := never.FindStringIndex(body); bad != nil {
		t.Errorf("%s says %q", at, body[max(0, bad[0]-80):min(len(body), bad[1]+80)])
	}
}

var hashed = regexp.MustCompile(`/ui/static/[0-9a-f]{12}/`)

// compare keeps a page without the hash of the files, which changes with each of them.
func compare(t *testing.T, name, body string) {
	t.Helper()
	got := hashed.ReplaceAll([]byte(body), []byte("/ui/static/HASH/"))
	file := filepath.Join("testdata", "golden", name+".html")
	if *update {
		if err := os.WriteFile(file, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not as it was; if it should be, run go test ./web/ui -run Golden -update.\n%s", file, difference(want, got))
	}
}

// difference is the first line that isn't the same.
func difference(want, got []byte) string {
	w, g := strings.Split(string(want), "\n"), strings.Split(string(got), "\n")
	for i := range min(len(w), len(g)) {
		if w[i] != g[i] {
			return "was: " + w[i] + "\nis:  " + g[i]
		}
	}
	return "one of them goes on after the other"
}

// The zone of the process is nobody's business: the pages are the same to the byte.
func TestThePagesAreTheSameWhereverTheProcessRuns(t *testing.T) {
	t.Parallel()
	for _, zone := range []string{"Asia/Kolkata", "America/St_Johns"} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestEveryPageIsGolden$", "-test.v")
		cmd.Env = append(os.Environ(), "TZ="+zone, processZone+"="+zone)
		out, err := cmd.CombinedOutput()
		if err != nil || !bytes.Contains(out, []byte("--- PASS: TestEveryPageIsGolden")) {
			t.Errorf("in %s: %v\n%.2000s", zone, err, out)
		}
	}
}
