package ui_test

import (
	"net/http"
	"testing"
)

func TestRunsAreFoundByWhatTheAddressSays(t *testing.T) {
	t.Parallel()
	srv, _ := open(t, story, nil)
	send(t, http.MethodGet, srv.URL+"/ui/runs").has(t, "settle 2026-09-16", "timed out", "control totals differ: 1200 minor units", "This run reports no progress")
	lost := send(t, http.MethodGet, srv.URL+"/ui/runs?state=lost")
	lost.has(t, "lease expired", `value="lost" selected`)
	lost.lacks(t, "control totals")
	send(t, http.MethodGet, srv.URL+"/ui/runs?job=settle&period=2026-09-15").has(t, "200,000 of 200,000")
	send(t, http.MethodGet, srv.URL+"/ui/runs?from=2031-01-01").has(t, "No run fits.")
	if bad := send(t, http.MethodGet, srv.URL+"/ui/runs?from=yesterday"); bad.status != http.StatusUnprocessableEntity {
		t.Errorf("a time that can't be read = %d, want 422", bad.status)
	}
}

func TestALongListIsReadPageByPage(t *testing.T) {
	t.Parallel()
	srv, _ := open(t, story+`;
insert into pawl.runs (id, job, key, revision, attempt, lock, token, holder, state, started_at, ended_at)
select gen_random_uuid(), 'settle', 'k' || g, 1, 1, 'job:settle', g, 'w', 'complete', now() - g * interval '1 h', now() - g * interval '1 h' from generate_series(1, 150) g`, nil)
	first := send(t, http.MethodGet, srv.URL+"/ui/runs?state=complete")
	next := between(t, first.body, `There are more: <a href="`, `"`)
	second := send(t, http.MethodGet, srv.URL+unescape(next))
	if second.status != http.StatusOK {
		t.Fatalf("%s = %d", next, second.status)
	}
	second.has(t, "k150<")
	second.lacks(t, "There are more", ">settle k1<")
}

func TestPeriodsSayWhyTheyAreNotDone(t *testing.T) {
	t.Parallel()
	srv, _ := open(t, story+`;
insert into pawl.periods (job, key, lock, state, reason, start_at, end_at, scheduled_at, ended_at)
values ('settle', '2026-09-10', 'job:settle', 'missed', 'window', '2026-09-10Z', '2026-09-11Z', '2026-09-11 02:00Z', now())`, nil)
	got := send(t, http.MethodGet, srv.URL+"/ui/periods/settle")
	got.has(t, "2026-09-16", "running", "2026-09-10", "missed", "window", "/ui/periods/settle/2026-09-17/cancel")
	got.has(t, `href="/ui/jobs/settle/backfill?from=2026-09-10" aria-label="Backfill 2026-09-10"`)
	send(t, http.MethodGet, srv.URL+"/ui/periods/settle/2026-09-10").has(t, `href="/ui/jobs/settle/backfill?from=2026-09-10">Backfill 2026-09-10…`)
	open := send(t, http.MethodGet, srv.URL+"/ui/periods/settle?state=missed")
	open.lacks(t, "/ui/periods/settle/2026-09-17/cancel")
}

func TestARunTellsWhatHappenedToIt(t *testing.T) {
	t.Parallel()
	srv, _ := open(t, story+`;
insert into pawl.outputs (run, job, head, tail, bytes) values ('00000000-0000-4000-8000-000000000004', 'settle', 'began <b>', 'the end', 9000)`, nil)
	lost := send(t, http.MethodGet, srv.URL+"/ui/runs/00000000-0000-4000-8000-000000000004")
	lost.has(t, "lost", "lease expired", "1795969904", "taken over", "began &lt;b&gt;", "What is between is left out.", "/ui/runs/00000000-0000-4000-8000-000000000005")
	lost.lacks(t, "<b>\n", "Ended: ")
	send(t, http.MethodGet, srv.URL+"/ui/runs/00000000-0000-4000-8000-000000000005").has(t, "since start", "from a checkpoint", "/ui/locks/job:settle/release")
	for _, id := range []string{"nonsense", "00000000-0000-4000-8000-00000000dead"} {
		if none := send(t, http.MethodGet, srv.URL+"/ui/runs/"+id); none.status != http.StatusNotFound {
			t.Errorf("run %s = %d, want 404", id, none.status)
		}
	}
}

func TestThePeriodTellsWhyAndTheQueueWhatWaits(t *testing.T) {
	t.Parallel()
	srv, _ := open(t, story, nil)
	send(t, http.MethodGet, srv.URL+"/ui/periods/settle/2026-09-16").has(t, "What happened", "worker-2/4411/9f3c", "lease expired")
	send(t, http.MethodGet, srv.URL+"/ui/queue").has(t, "/ui/jobs/settle", "By job", "Workers")
	if none := send(t, http.MethodGet, srv.URL+"/ui/periods/nobody/2026-09-16"); none.status != http.StatusNotFound {
		t.Errorf("a period of no job = %d, want 404", none.status)
	}
}
