package web_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"pawl/jobs"
	lockkeys "pawl/lockrepo/keys"
)

// publish lets a job publish files, by name, each with its text.
func (a *lockAPI) publish(t *testing.T, lock string, files map[string]string) {
	t.Helper()
	r, err := jobs.New(jobs.Config{Pool: a.pool, Artifacts: a.store, NoPrune: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	work := func(ctx context.Context, run *jobs.Run) error {
		defer stop()
		for name, text := range files {
			if _, err := run.Publish(ctx, name, func(w io.Writer) error { _, err := io.WriteString(w, text); return err }); err != nil {
				t.Error(err)
			}
		}
		return nil
	}
	yesterday := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -1)
	err = r.Add(jobs.Job{Name: "publish", Lock: lock, Schedule: "@daily", Start: yesterday.Add(time.Hour), Func: work})
	if err == nil {
		err = r.Run(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestAnArtifactIsStreamedWithItsHashAndToken(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	large := strings.Repeat("0123456789", 1<<20)
	a.publish(t, "payments/reports", map[string]string{"sub/report.csv": "id,amount\n1,2.00\n", "page.html": "<script>alert(1)</script>", "large": large, "empty": ""})
	got := a.ask(t, http.MethodGet, "/artifacts/sub/report.csv", "")
	got.is(t, http.StatusOK, "")
	sum := sha256.Sum256([]byte("id,amount\n1,2.00\n"))
	tag := `"` + hex.EncodeToString(sum[:]) + `"`
	if got.body != "id,amount\n1,2.00\n" {
		t.Errorf("body %q", got.body)
	}
	for name, want := range map[string]string{
		"ETag": tag, "Content-Type": "text/csv; charset=utf-8", "Artifact-Version": "1", "Cache-Control": "private, no-cache", "Content-Length": "17",
		"Content-Disposition": `attachment; filename="report.csv"`, "X-Content-Type-Options": "nosniff",
	} {
		if got.header.Get(name) != want {
			t.Errorf("%s = %q, want %q", name, got.header.Get(name), want)
		}
	}
	if len(got.header.Get("Fencing-Token")) < 16 {
		t.Errorf("Fencing-Token = %q", got.header.Get("Fencing-Token"))
	}
	// Encoded it is the same name; a head is a head; who has it needs no more.
	if again := a.ask(t, http.MethodGet, "/artifacts/sub%2Freport.csv", ""); again.body != got.body {
		t.Errorf("by %%2F = %d %s", again.status, again.body)
	}
	if head := a.ask(t, http.MethodHead, "/artifacts/sub/report.csv", ""); head.status != http.StatusOK || head.body != "" || head.header.Get("ETag") != tag {
		t.Errorf("HEAD = %d %q", head.status, head.body)
	}
	for _, sent := range []string{tag, "W/" + tag, `"x", ` + tag, "*"} {
		if same := a.ask(t, http.MethodGet, "/artifacts/sub/report.csv", "", "If-None-Match", sent); same.status != http.StatusNotModified || same.body != "" {
			t.Errorf("If-None-Match %s = %d", sent, same.status)
		}
	}
	if other := a.ask(t, http.MethodGet, "/artifacts/sub/report.csv", "", "If-None-Match", `"x"`); other.status != http.StatusOK {
		t.Errorf("another tag = %d", other.status)
	}
	if all := a.ask(t, http.MethodGet, "/artifacts/large", ""); all.body != large {
		t.Errorf("%d bytes of %d", len(all.body), len(large))
	}
	if none := a.ask(t, http.MethodGet, "/artifacts/empty", ""); none.status != http.StatusOK || none.body != "" {
		t.Errorf("an empty one = %d %q", none.status, none.body)
	}
	// What a job writes is no page of ours.
	page := a.ask(t, http.MethodGet, "/artifacts/page.html", "")
	if policy := page.header.Get("Content-Security-Policy"); !strings.HasPrefix(policy, "sandbox; default-src 'none';") || strings.Contains(policy, "script") {
		t.Errorf("policy %q", policy)
	}
}

func TestAnArtifactThatIsNotThereIsNotFound(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	a.publish(t, "payments/reports", map[string]string{"report.csv": "x"})
	for _, path := range []string{"/artifacts/", "/artifacts/no.csv", "/artifacts/../report.csv", "/artifacts/%2e%2e/report.csv", "/artifacts/report.csv/", "/artifacts/%00", "/artifacts//report.csv", "/artifacts/.hidden"} {
		a.ask(t, http.MethodGet, path, "").is(t, http.StatusNotFound, "not-found")
	}
	got := a.ask(t, http.MethodPost, "/artifacts/report.csv", "")
	got.is(t, http.StatusMethodNotAllowed, "method-not-allowed")
	if got.header.Get("Allow") != "GET, HEAD" {
		t.Errorf("Allow = %q", got.header.Get("Allow"))
	}
	// Nobody is told what there is beyond the key's prefix.
	for prefix, want := range map[string]int{"payments/": 200, "": 200, "hr/": 404} {
		bearer := a.key(t, lockkeys.Key{Name: "reader " + prefix, Role: lockkeys.Reader, Prefix: prefix})
		if got := a.ask(t, http.MethodGet, "/artifacts/report.csv", "", "Authorization", "Bearer "+bearer); got.status != want {
			t.Errorf("a key for %q = %d, want %d", prefix, got.status, want)
		}
	}
	a.ask(t, http.MethodGet, "/artifacts/report.csv", "").is(t, http.StatusUnauthorized, "unauthorized")
}

// A client never has all of a file that isn't what was published.
func TestAnArtifactThatWasChangedIsCutOff(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	a.publish(t, "l", map[string]string{"report.csv": strings.Repeat("x", 1<<20), "gone.csv": "x"})
	var file, gone string
	if err := a.pool.QueryRow(t.Context(), `select max(file) filter (where name = 'report.csv'), max(file) filter (where name = 'gone.csv') from pawl.artifacts`).Scan(&file, &gone); err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{file, gone} {
		if err := a.store.Remove(t.Context(), f); err != nil {
			t.Fatal(err)
		}
	}
	w, err := a.store.Create(t.Context(), "x.tmp")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, strings.Repeat("x", 1<<20-1)+"y"); err != nil {
		t.Fatal(err)
	}
	if err := w.Seal(t.Context(), file); err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, a.url+"/artifacts/report.csv", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if b, err := io.ReadAll(res.Body); err == nil || len(b) >= 1<<20 {
		t.Errorf("%d bytes, %v: want less than all, and an error", len(b), err)
	}
	a.ask(t, http.MethodGet, "/artifacts/gone.csv", "").is(t, http.StatusGone, "artifact-missing")
	if log := a.log.String(); !strings.Contains(log, "isn't what was published") || !strings.Contains(log, "isn't in the store") {
		t.Error("the log doesn't say so")
	}
}
