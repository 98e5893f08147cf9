package ui_test

import (
	"net/http"
	"testing"
)

func TestAJobShowsItsPeriodsRunsAndWhatComesNext(t *testing.T) {
	t.Parallel()
	srv, _ := open(t, story, nil)
	send(t, http.MethodGet, srv.URL+"/ui/jobs").has(t, `href="/ui/jobs/settle"`, "every day at 02:00", "/ui/periods/settle", "2026-09-16 running")
	got := send(t, http.MethodGet, srv.URL+"/ui/jobs/settle")
	got.has(t, "job:settle", "120,400 of 200,000", "02:00:00 UTC", "/ui/jobs/settle/pause", "/ui/runs/00000000-0000-4000-8000-000000000005")
	if none := send(t, http.MethodGet, srv.URL+"/ui/jobs/nobody"); none.status != http.StatusNotFound {
		t.Errorf("a job that does not exist = %d, want 404", none.status)
	}
	if bad := send(t, http.MethodGet, srv.URL+"/ui/jobs?state=fine"); bad.status != http.StatusUnprocessableEntity {
		t.Errorf("a state that does not exist = %d, want 422", bad.status)
	}
}
