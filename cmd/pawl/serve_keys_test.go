package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pawl/internal/pgtest"
)

// serveAPI starts pawl serve with nothing but the API's address, and returns where it is.
func serveAPI(t *testing.T, db string, args ...string) (p *process, url string) {
	t.Helper()
	args = append([]string{"serve", "--log-format", "json", "--listen", "127.0.0.1:0"}, args...)
	p = start(t, []string{"DATABASE_URL=" + db}, args...)
	p.hears(t, 20*time.Second, "web: serving")
	return p, addresses(p)[0]
}

// ask sends one request, with a key if there is one.
func ask(t *testing.T, method, url, bearer, body string) (status int, answer string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if bearer != "" {
		req.Header.Set("Authorization", "Bearer "+bearer)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close() // it is read
	return resp.StatusCode, string(b)
}

// makeKey runs pawl key create.
func makeKey(t *testing.T, db string, args ...string) (bearer string) {
	t.Helper()
	code, out, said := runPawl(t, append([]string{"key", "create", "--database-url", db}, args...)...)
	if code != codeOK {
		t.Fatalf("exit code %d, %s", code, said)
	}
	return strings.TrimSpace(out)
}

// A key that works now is remembered for a second; no request that is sent later is let in.
func TestARevokedKeyIsRefusedWithinASecondAndTheServerStaysClosed(t *testing.T) {
	t.Parallel()
	db := pgtest.URL(t)
	p, url := serveAPI(t, db)
	p.hears(t, 20*time.Second, "no key was ever made")
	const acquire = `{"owner":"a","ttl_seconds":60}`
	if status, body := ask(t, http.MethodPost, url+"/locks/open", "", acquire); status != http.StatusOK {
		t.Fatalf("without any key: %d %s", status, body)
	}
	bearer := makeKey(t, db, "--name", "billing", "--role", "worker", "--prefix", "payments/")
	pgtest.Eventually(t, 10*time.Second, "nobody is answered without a key", func() bool {
		status, _ := ask(t, http.MethodGet, url+"/locks", "", "")
		return status == http.StatusUnauthorized
	})
	if status, body := ask(t, http.MethodPost, url+"/locks/payments%2Fsettle", bearer, acquire); status != http.StatusOK || !strings.Contains(body, `"acquired":true`) {
		t.Fatalf("with its key: %d %s", status, body)
	}
	if status, _ := ask(t, http.MethodPost, url+"/locks/other", bearer, acquire); status != http.StatusForbidden {
		t.Errorf("past its prefix: %d", status)
	}
	if code, _, said := runPawl(t, "key", "revoke", "billing", "--database-url", db); code != codeOK {
		t.Fatalf("exit code %d, %s", code, said)
	}
	revoked := time.Now()
	for refused := false; !refused; {
		sent := time.Now()
		status, body := ask(t, http.MethodPost, url+"/locks/payments%2Fsettle", bearer, acquire)
		switch {
		case status == http.StatusUnauthorized:
			refused = true
		case sent.Sub(revoked) > time.Second:
			t.Fatalf("a request that was sent %s after it was revoked: %d %s", sent.Sub(revoked), status, body)
		}
	}
	if status, _ := ask(t, http.MethodGet, url+"/locks", "", ""); status != http.StatusUnauthorized {
		t.Errorf("after the last key was revoked anybody is answered: %d", status)
	}
}

func TestServeListensAnywhereOnceThereIsAKeyAndSaysThatItIsPlainText(t *testing.T) {
	t.Parallel()
	db := pgtest.URL(t)
	bearer := makeKey(t, db, "--name", "board", "--role", "reader")
	p, url := serveAPI(t, db, "--listen", "0.0.0.0:0")
	p.hears(t, 20*time.Second, "keys come in plain text")
	url = regexp.MustCompile(`//.*:`).ReplaceAllString(url, "//127.0.0.1:")
	for key, want := range map[string]int{"": http.StatusUnauthorized, "pawl_nobody_x": http.StatusUnauthorized, bearer: http.StatusOK} {
		if status, body := ask(t, http.MethodGet, url+"/locks", key, ""); status != want {
			t.Errorf("%q: %d, want %d: %s", key, status, want, body)
		}
	}
}

// --insecure-no-auth is for trying out; it doesn't let anybody past keys that exist.
func TestInsecureOpensNothingOnceThereAreKeys(t *testing.T) {
	t.Parallel()
	db := pgtest.URL(t)
	_, url := serveAPI(t, db, "--listen", "0.0.0.0:0", "--insecure-no-auth")
	url = regexp.MustCompile(`//.*:`).ReplaceAllString(url, "//127.0.0.1:")
	if status, body := ask(t, http.MethodGet, url+"/locks", "", ""); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	makeKey(t, db, "--name", "board", "--role", "reader")
	pgtest.Eventually(t, 10*time.Second, "nobody is answered without a key", func() bool {
		status, _ := ask(t, http.MethodGet, url+"/locks", "", "")
		return status == http.StatusUnauthorized
	})
	again, _ := serveAPI(t, db, "--listen", "0.0.0.0:0", "--insecure-no-auth")
	again.hears(t, 20*time.Second, "--insecure-no-auth opens nothing")
}

func TestALeaseIsRenewedNoLongerThanMaxHold(t *testing.T) {
	t.Parallel()
	db := pgtest.URL(t)
	_, url := serveAPI(t, db, "--max-hold", "1s")
	const body = `{"owner":"a","ttl_seconds":60}`
	if status, answer := ask(t, http.MethodPost, url+"/locks/x", "", body); status != http.StatusOK {
		t.Fatalf("%d %s", status, answer)
	}
	pgtest.Eventually(t, 10*time.Second, "a renewal is refused", func() bool {
		status, answer := ask(t, http.MethodPost, url+"/locks/x/renew", "", body)
		if status != http.StatusOK && status != http.StatusConflict {
			t.Fatalf("%d %s", status, answer)
		}
		return status == http.StatusConflict && strings.Contains(answer, "/problems/lease-lost")
	})
}

// What stands on the page is run as it stands there.
func TestTheHTTPPagesExampleWorks(t *testing.T) {
	t.Parallel()
	db := pgtest.URL(t)
	_, url := serveAPI(t, db)
	all := blocks(t, "http.md", "sh")
	if !strings.Contains(all[0], "pawl serve") {
		t.Fatalf("the page begins with %q, not with how to serve", all[0])
	}
	script := strings.ReplaceAll(strings.Join(all[1:], "\n"), "http://127.0.0.1:8399", url)
	run := func(script string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", script)
		cmd.Dir = t.TempDir()
		cmd.Env = append(cmd.Environ(), "DATABASE_URL="+db, "PAWL_URL="+url)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %s%s", err, out, stderr.String())
		}
		return string(out)
	}
	out := run(script)
	for _, want := range []string{`"acquired":true`, `"current":true`, `"last_token":null`, `"locks":[`, `"next_cursor":null`, `"tenures":[`} {
		if !strings.Contains(out, want) {
			t.Errorf("%s is missing in %s", want, out)
		}
	}
	first, _, _ := strings.Cut(out, "\n")
	if got, want := names(t, first), names(t, blocks(t, "http.md", "json")[0]); !slices.Equal(got, want) {
		t.Errorf("an answer has %v, the page shows %v", got, want)
	}
	if !one[bool](t, db, `select (select holder is null from pawl.locks) and (select bool_and(how = 'released') and count(*) = 1 from pawl.tenures)`) {
		t.Error("the lock is not released")
	}
}

// names are the keys of an object and of those in it.
func names(t *testing.T, text string) (all []string) {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	for name, value := range object {
		all = append(all, name)
		if inner, ok := value.(map[string]any); ok {
			for n := range inner {
				all = append(all, name+"."+n)
			}
		}
	}
	slices.Sort(all)
	return all
}

func TestTheHTTPPageHasEveryProblemWithItsStatus(t *testing.T) {
	t.Parallel()
	codes := map[string]string{}
	for code := 400; code < 600; code++ {
		codes["Status"+strings.ReplaceAll(http.StatusText(code), " ", "")] = strconv.Itoa(code)
	}
	source := readFile(t, "web", "problem_kinds.go")
	var want []string
	for _, m := range regexp.MustCompile(`slug: "([a-z-]+)".*status: http\.(Status\w+)`).FindAllStringSubmatch(source, -1) {
		want = append(want, codes[m[2]]+" "+m[1])
	}
	var got []string
	for _, m := range regexp.MustCompile("(?m)^\\| (\\d{3}) \\| `([a-z-]+)` \\| [^|]+ \\| [^|]+ \\|$").FindAllStringSubmatch(readFile(t, "docs", "http.md"), -1) {
		got = append(got, m[1]+" "+m[2])
	}
	slices.Sort(want)
	slices.Sort(got)
	if len(want) < 17 || !slices.Equal(got, want) {
		t.Errorf("the page has %v, want %v", got, want)
	}
}

func readFile(t *testing.T, path ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(append([]string{"..", ".."}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
