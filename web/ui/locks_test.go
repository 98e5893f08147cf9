package ui_test

import (
	"net/http"
	"testing"
)

func TestTheLocksAreListedByNameAndState(t *testing.T) {
	t.Parallel()
	srv, _ := open(t, story, nil)
	all := send(t, http.MethodGet, srv.URL+"/ui/locks")
	all.has(t, "job:settle", "worker-2/4411/9f3c", "settle</a>, period 2026-09-16", "gdpr:purge", "nobody took it", "/ui/locks/report:acme%2F%3Cimg%20src=x%20onerror=alert%281%29%3E")
	all.lacks(t, "<img")
	stale := send(t, http.MethodGet, srv.URL+"/ui/locks?state=stale")
	stale.has(t, "gdpr:purge")
	stale.lacks(t, "job:settle")
	if got := send(t, http.MethodGet, srv.URL+"/ui/locks?state=lost"); got.status != http.StatusUnprocessableEntity {
		t.Errorf("a state that does not exist = %d, want 422", got.status)
	}
}

func TestAnUnchangedPageIsNotSentAgain(t *testing.T) {
	t.Parallel()
	srv, pool := open(t, story, nil)
	tag := send(t, http.MethodGet, srv.URL+"/ui/locks").header.Get("ETag")
	if again := send(t, http.MethodGet, srv.URL+"/ui/locks", "If-None-Match", tag); again.status != http.StatusNotModified || again.body != "" {
		t.Errorf("unchanged = %d with %d bytes, want 304", again.status, len(again.body))
	}
	if _, err := pool.Exec(t.Context(), `update pawl.locks set holder = 'worker-9' where name = 'job:settle'`); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a changed page is sent", func() bool {
		return send(t, http.MethodGet, srv.URL+"/ui/locks", "If-None-Match", tag).status == http.StatusOK
	})
}
