package jobs

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/riverqueue/river"

	"pawl/jobs/alert"
)

func TestAChannelIsToldOfWhatItIsFor(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	r.cfg.App = "ledger"
	r.channels = []alert.Channel{{Name: "ops", URL: "https://x.example/"}, {Name: "night", URL: "https://y.example/", On: []string{alert.Dead}}}
	const sql = `insert into pawl.events (kind, subject, app, job, at) values ($1, $2, nullif($3, ''), nullif($4, ''), clock_timestamp() + $5 * interval '1 s') returning 1`
	exec(t, pool, sql, "dead", "before", "ledger", "j", -60)
	if err := r.openChannels(t.Context()); err != nil {
		t.Fatal(err)
	}
	exec(t, pool, `insert into pawl.schedules (job, app, definition, lock, watermark) values ('picky', 'ledger', '{"alerts": ["night"]}', 'L', now()) returning 1`)
	none, all := Job{Name: "quiet", Alerts: []string{}}.definition("ledger"), Job{Name: "loud"}.definition("ledger")
	exec(t, pool, `insert into pawl.schedules (job, app, definition, lock, watermark)
		values ('quiet', 'ledger', $1::text::jsonb, 'Q', now()), ('loud', 'ledger', $2::text::jsonb, 'P', now()) returning 1`, string(none.json()), string(all.json()))
	for _, e := range [][4]string{
		{"dead", "7", "ledger", "quiet"},
		{"dead", "8", "ledger", "loud"},
		{"dead", "1", "ledger", "j"},
		{"late", "2", "ledger", "j"},
		{"dead", "3", "ledger", "picky"},
		{"refusal", "4", "", ""},
		{"dead", "5", "other", "k"},
		{"dead", "6", "pawl", "pawl-prune"},
	} {
		exec(t, pool, sql, e[0], e[1], e[2], e[3], 0)
	}
	other := openedOn(t, pool)
	other.cfg.App, other.channels = r.cfg.App, r.channels
	done := make(chan error, 2)
	for _, r := range []*Runner{r, other} {
		go func() { done <- errors.Join(r.queueAlerts(context.Background()), r.queueAlerts(context.Background())) }()
	}
	if err := errors.Join(<-done, <-done); err != nil {
		t.Fatal(err)
	}
	const told = `select string_agg(e.subject, ' ' order by e.subject) from pawl.alerts a join pawl.events e on e.id = a.event
	  join pawl.river_job j on j.args ->> 'event' = e.id::text and j.kind = $2 and j.queue = 'pawl_alerts' where a.channel = $1`
	for channel, want := range map[string]string{"ops": "1 2 4 6 8", "night": "1 3 6 8"} {
		var got string
		if err := pool.QueryRow(t.Context(), told, "ledger/"+channel, alertKind("ledger", channel)).Scan(&got); err != nil || got != want {
			t.Errorf("%s is told of %q, want %q (%v)", channel, got, want, err)
		}
	}
}

func TestTwoAppsMayEachHaveAChannelOfOneName(t *testing.T) {
	t.Parallel()
	if a, b := alertKind("one", "ops"), alertKind("two", "ops"); a == b {
		t.Errorf("both have the kind %s: one's replica would send to the other's URL", a)
	}
	if (alertArgs{kind: alertKind("an app", "ops")}).Kind() != alertKind("an app", "ops") {
		t.Error("the kind doesn't stay")
	}
}

// worker is a channel's worker whose receiver answers with a status.
func worker(t *testing.T, status int, after string) (*alertWorker, *bytes.Buffer, string) {
	t.Helper()
	r, pool := opened(t)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", after)
		w.WriteHeader(status)
	}))
	t.Cleanup(s.Close)
	var said bytes.Buffer
	var id string
	if err := pool.QueryRow(t.Context(), `insert into pawl.events (kind, subject, job, period) values ('dead', 'x', 'j', '1') returning id::text`).Scan(&id); err != nil {
		t.Fatal(err)
	}
	channel := func() (alert.Channel, bool) {
		return alert.Channel{Name: "ops", URL: s.URL + "/T0PSECRET", Secret: "s3cret"}, true
	}
	return &alertWorker{
		channel: channel, pool: r.pool,
		log: slog.New(slog.NewTextHandler(&said, nil)), dead: alertDead,
	}, &said, id
}

func job(id string, age time.Duration, attempt int) *river.Job[alertArgs] {
	j := &river.Job[alertArgs]{Args: alertArgs{Event: id}}
	j.JobRow = fresh(j.JobRow)
	j.CreatedAt, j.Attempt = time.Now().Add(-age), attempt
	return j
}

func fresh[T any](*T) *T { return new(T) }

func TestAnAlertIsDeadAfterADayAndTheLogSaysSo(t *testing.T) {
	t.Parallel()
	w, said, id := worker(t, 500, "")
	var given *river.JobCancelError
	if err := w.Work(t.Context(), job(id, 23*time.Hour, 100)); err == nil || errors.As(err, &given) {
		t.Errorf("after 23 hours Work = %v, want an error that is tried again", err)
	}
	if err := w.Work(t.Context(), job(id, 25*time.Hour, 120)); !errors.As(err, &given) {
		t.Errorf("after 25 hours Work = %v, want that it is given up", err)
	}
	if s := said.String(); !strings.Contains(s, "level=ERROR") || !strings.Contains(s, "alert is dead") || !strings.Contains(s, id) || strings.Contains(s, "ECRET") || strings.Contains(s, "s3cret") {
		t.Errorf("the log says %q", s)
	}
}

func TestARetryAfterIsHonoured(t *testing.T) {
	t.Parallel()
	w, _, id := worker(t, 429, "120")
	var snooze *river.JobSnoozeError
	if err := w.Work(t.Context(), job(id, 0, 1)); !errors.As(err, &snooze) || snooze.Duration != 2*time.Minute {
		t.Errorf("Work = %v, want a snooze of two minutes", err)
	}
}

func TestTimesAreToldInUTC(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	var id string
	err := pool.QueryRow(t.Context(), `insert into pawl.events (kind, subject, job, period, detail)
	  values ('overdue', 'x', 'j', '1', '{"due_at": "2026-09-16T06:00:00.5+02:00", "state": "open"}') returning id::text`).Scan(&id)
	if err != nil {
		t.Fatal(err)
	}
	e, err := readEvent(t.Context(), r.pool, id)
	if err != nil {
		t.Fatal(err)
	}
	body, err := e.JSON()
	if err != nil || !strings.Contains(string(body), `"due_at":"2026-09-16T04:00:00.5Z"`) || !strings.Contains(string(body), "due by 2026-09-16T04:00:00Z and") {
		t.Errorf("sent is %s, %v", body, err)
	}
}

func TestAnEventThatIsPrunedIsNotSentAndNoError(t *testing.T) {
	t.Parallel()
	w, _, _ := worker(t, 500, "")
	if err := w.Work(t.Context(), job("8b7c2c04-6c0e-4b8e-9b57-0c8f8a3c6f10", 0, 1)); err != nil {
		t.Errorf("Work = %v", err)
	}
}

// Another replica may have it still: it is neither lost nor an attempt of this one's.
func TestAnAlertForAChannelThatIsGoneIsLeftToOthers(t *testing.T) {
	t.Parallel()
	w, _, id := worker(t, 200, "")
	w.channel = func() (alert.Channel, bool) { return alert.Channel{}, false }
	var later *river.JobSnoozeError
	if err := w.Work(t.Context(), job(id, 0, 1)); !errors.As(err, &later) {
		t.Errorf("Work = %v, want a snooze", err)
	}
}

func TestAnAlertIsRepeatedEverMoreSlowly(t *testing.T) {
	t.Parallel()
	var total time.Duration
	for attempt := 1; attempt <= 1000; attempt++ {
		d := time.Until((&alertWorker{}).NextRetry(job("", 0, attempt)))
		most := min(alertFirst<<min(attempt-1, 12), alertMost)
		if d > most || d < most/2-time.Second {
			t.Fatalf("attempt %d waits %s, want %s to %s", attempt, d, most/2, most)
		}
		total += d
	}
	if total < alertDead {
		t.Errorf("1000 attempts last %s: River would give up before us", total)
	}
}
