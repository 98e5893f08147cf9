package ui_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pawl/jobs"
	"pawl/lockrepo/keys"
	"pawl/web"
)

// stored gives the pages a store with what name's versions say: version 1 is superseded, 2 is, too, and its bytes are gone, 3 is current.
func stored(t *testing.T, s *staffed, dir, name string, text func(version int) string) {
	t.Helper()
	for v := 1; v <= 3; v++ {
		sum := sha256.Sum256([]byte(text(v)))
		hash, file := hex.EncodeToString(sum[:]), fmt.Sprintf("%s.%d.%s", name, v, hex.EncodeToString(sum[:])[:16])
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text(v)), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := s.pool.Exec(t.Context(), `
insert into pawl.artifact_versions (name, version, lock, token, hash, size, file, holder, run, job, key, revision, operation, at, superseded_at, removed_at)
values ($1, $2::int, 'job:report', $2::int, $3, $4, $5, 'worker', gen_random_uuid(), 'report', 'k', 1, gen_random_uuid(), now(), case when $2::int < 3 then now() end, case when $2::int = 2 then now() end)`,
			name, v, hash, len(text(v)), file); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.pool.Exec(t.Context(), `insert into pawl.artifacts (name, version, lock, token, hash, size, file, holder, at)
select name, version, lock, token, hash, size, file, holder, at from pawl.artifact_versions where name = $1 and version = 3`, name); err != nil {
		t.Fatal(err)
	}
}

// withStore are people before pages that have a store in dir.
func withStore(t *testing.T, dir string) *staffed {
	t.Helper()
	s := staff(t, "select", nil)
	store, err := jobs.NewArtifactDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	artifacts, err := jobs.NewArtifacts(jobs.ArtifactsConfig{Pool: s.pool, Store: store})
	if err != nil {
		t.Fatal(err)
	}
	s.Server = on(t, s.pool, func(c *web.Config) { c.Keys, c.Artifacts = s.store, artifacts })
	return s
}

const versions = "/ui/artifacts/sub%2Fpage.html/versions/"

func TestVersionsOfAnArtifactAreDownloadedWithTheCookieOfTheSignIn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := withStore(t, dir)
	stored(t, s, dir, "sub/page.html", func(v int) string {
		return fmt.Sprintf("<script>alert(%d)</script><form action=/ui/jobs/x/run method=post>", v)
	})
	list := s.get(t, "eve", "/ui/artifacts")
	list.has(t, `href="`+versions+`3"`)
	list.lacks(t, "--artifacts")
	page := s.get(t, "eve", "/ui/artifacts/sub%2Fpage.html")
	page.has(t, `href="`+versions+`3"`, `href="`+versions+`1"`, "its bytes are gone")
	page.lacks(t, versions+`2"`)
	for _, v := range []string{"1", "3"} {
		got := s.get(t, "eve", versions+v)
		got.is(t, http.StatusOK)
		if !strings.Contains(got.body, "alert("+v+")") {
			t.Errorf("version %s is %q", v, got.body)
		}
		// What a job writes is no page of ours, whoever has made it.
		for name, want := range map[string]string{
			"Content-Disposition": `attachment; filename="page.html"`, "X-Content-Type-Options": "nosniff", "Artifact-Version": v, "Fencing-Token": v,
			"Cache-Control": "private, no-cache", "Content-Security-Policy": "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'",
			"Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin", "Set-Cookie": "",
		} {
			if got.header.Get(name) != want {
				t.Errorf("%s = %q, want %q", name, got.header.Get(name), want)
			}
		}
		same := send(t, http.MethodGet, s.URL+versions+v, "Cookie", "pawl_key="+s.bearer["eve"], "If-None-Match", got.header.Get("ETag"))
		if same.status != http.StatusNotModified || same.body != "" {
			t.Errorf("with its ETag it is %d %q", same.status, same.body)
		}
		head := send(t, http.MethodHead, s.URL+versions+v, "Cookie", "pawl_key="+s.bearer["eve"])
		if head.status != http.StatusOK || head.body != "" || head.header.Get("Content-Length") != got.header.Get("Content-Length") {
			t.Errorf("HEAD = %d %q", head.status, head.body)
		}
	}
	for at, want := range map[string]int{
		"2": 410, "4": 404, "0": 404, "x": 404, "-1": 404, "3/": 404, "9223372036854775807": 404,
	} {
		if got := s.get(t, "eve", versions+at); got.status != want || !strings.Contains(got.header.Get("Content-Type"), "text/html") {
			t.Errorf("version %s = %d %s, want %d and a page", at, got.status, got.header.Get("Content-Type"), want)
		}
	}
	s.get(t, "eve", versions+"2").has(t, "were removed at")
	for _, none := range []string{"/ui/artifacts/nobody/versions/1", "/ui/artifacts/..%2F..%2Fetc%2Fpasswd/versions/1", "/ui/artifacts/%00/versions/1"} {
		s.get(t, "eve", none).is(t, http.StatusNotFound)
	}
	s.post(t, "ann", versions+"3", nil).is(t, http.StatusMethodNotAllowed)
}

func TestADownloadNeedsWhatAPageNeeds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := withStore(t, dir)
	stored(t, s, dir, "sub/page.html", func(int) string { return "secret" })
	if got := send(t, http.MethodGet, s.URL+versions+"3"); got.status != http.StatusSeeOther || strings.Contains(got.body, "secret") {
		t.Errorf("nobody gets %d %q", got.status, got.body)
	}
	// A key with a prefix opens no page, this neither: not even under its own prefix. GET /artifacts/ is for it.
	for _, prefix := range []string{"hr/", "job:"} {
		bearer, _, err := s.store.Create(t.Context(), keys.Key{Name: "of " + prefix, Role: keys.Operator, Prefix: prefix, CreatedBy: "test"})
		if err != nil {
			t.Fatal(err)
		}
		for _, header := range [][]string{{"Cookie", "pawl_key=" + bearer}, {"Authorization", "Bearer " + bearer}} {
			if got := send(t, http.MethodGet, s.URL+versions+"3", header...); got.status != http.StatusForbidden || strings.Contains(got.body, "secret") {
				t.Errorf("a key for %q by %s gets %d", prefix, header[0], got.status)
			}
		}
	}
}

func TestBytesThatAreMissingOrChangedAreToldAndNeverGivenWhole(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := withStore(t, dir)
	stored(t, s, dir, "a.csv", func(v int) string { return strings.Repeat("x", 100+v) })
	file := one(t, s.pool, `select file from pawl.artifact_versions where version = 3`)
	if err := os.WriteFile(filepath.Join(dir, file), []byte(strings.Repeat("x", 102)+"y"), 0o600); err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/ui/artifacts/a.csv/versions/3", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Cookie", "pawl_key="+s.bearer["eve"])
	if res, err := http.DefaultTransport.RoundTrip(req); err == nil {
		n, err := res.Body.Read(make([]byte, 200))
		if err == nil && n == 103 {
			t.Error("changed bytes were given whole")
		}
		_ = res.Body.Close()
	}
	if err := os.Remove(filepath.Join(dir, file)); err != nil {
		t.Fatal(err)
	}
	got := s.get(t, "eve", "/ui/artifacts/a.csv/versions/3")
	got.is(t, http.StatusGone)
	got.has(t, "Its bytes are missing", "not in this server’s store", `href="/ui/artifacts/a.csv"`)
	if got.header.Get("Content-Disposition") != "" {
		t.Error("the page that says so is saved as a file")
	}
}

func TestWithoutAStoreNothingIsDownloadedAndThePageSaysWhy(t *testing.T) {
	t.Parallel()
	srv, _ := open(t, payouts, nil)
	for _, path := range []string{"/ui/artifacts", "/ui/artifacts/statements%2Facme.csv"} {
		got := send(t, http.MethodGet, srv.URL+path)
		got.has(t, "started without <code>--artifacts</code>")
		got.lacks(t, "/versions/", ">Download<")
	}
	got := send(t, http.MethodGet, srv.URL+"/ui/artifacts/statements%2Facme.csv/versions/2")
	got.is(t, http.StatusNotFound)
	got.has(t, "--artifacts")
}
