package jobs_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"pawl/internal/pgtest"
	"pawl/jobs"
	"pawl/jobs/alert"
)

// lossy is a receiver that loses its first answers to each event: it has heard it, and its sender can't know.
type lossy struct {
	*httptest.Server
	t     *testing.T
	mu    sync.Mutex
	heard map[string]int // by the event's id
	about map[string]string
	loses int
}

func newLossy(t *testing.T, loses int) *lossy {
	t.Helper()
	l := &lossy{t: t, heard: map[string]int{}, about: map[string]string{}, loses: loses}
	l.Server = httptest.NewServer(l)
	t.Cleanup(l.Close)
	return l
}

func (l *lossy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if got, want := r.Header.Get("Pawl-Signature"), alert.Sign("s3cret", r.Header.Get("Pawl-Timestamp"), body); got != want {
		l.t.Errorf("signature %q, want %q", got, want)
	}
	var e struct{ ID, Event, Job, Period string }
	if err := json.Unmarshal(body, &e); err != nil {
		l.t.Error(err)
	}
	l.mu.Lock()
	l.heard[e.ID]++
	l.about[e.ID] = e.Event + " " + e.Job + " " + e.Period
	lose := l.heard[e.ID] <= l.loses
	l.mu.Unlock()
	if lose {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_ = conn.Close()
		}
	}
}

// ids are the events about something.
func (l *lossy) ids(about string) (ids []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, a := range l.about {
		if strings.HasPrefix(a, about) {
			ids = append(ids, id)
		}
	}
	return ids
}

func TestAReceiverThatLosesAnswersHearsEachEventUnderOneID(t *testing.T) {
	t.Parallel()
	pool, l := pgtest.New(t), newLossy(t, 2)
	fails := jobs.Job{
		Name: "settle", Schedule: "@daily", Start: daysAgo(4), MaxRetries: jobs.NoRetries,
		Func: func(context.Context, *jobs.Run) error { return errors.New("no") },
	}
	cfg := jobs.Config{Pool: pool, Channels: []alert.Channel{{Name: "ops", URL: l.URL + "/T0PSECRET", Secret: "s3cret", On: []string{alert.Dead}}}}
	_, said, _ := start(t, cfg, fails)
	_, saidToo, _ := start(t, cfg, fails) // two replicas
	const dead = 4
	until(t, pool, dead, `select count(*) from pawl.periods where state = 'dead'`)
	pgtest.Eventually(t, time.Minute, "every death is delivered", func() bool {
		return count(t, pool, `select count(*) from pawl.river_job where queue = 'pawl_alerts' and state = 'completed'`) == dead
	})
	if ids := l.ids("dead settle "); len(ids) != dead {
		t.Errorf("%d ids for %d deaths", len(ids), dead)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, n := range l.heard {
		if n != l.loses+1 {
			t.Errorf("%s (%s) was heard %d times, want %d", id, l.about[id], n, l.loses+1)
		}
		if count(t, pool, `select count(*) from pawl.events where id = $1::text::uuid`, id) != 1 {
			t.Errorf("%s isn't an event", id)
		}
	}
	for _, s := range []*lines{said, saidToo} {
		if s.has("T0PSECRET") || s.has("s3cret") {
			t.Error("the log tells a secret")
		}
	}
	if !said.has("alert not delivered", "attempt=1") && !saidToo.has("alert not delivered", "attempt=1") {
		t.Error("the log doesn't say that an alert wasn't delivered")
	}
}

func TestAnAlertOutlivesTheProcessThatHadIt(t *testing.T) {
	t.Parallel()
	pool, l := pgtest.New(t), newLossy(t, 1000)
	fails := jobs.Job{Name: "settle", Schedule: "@daily", Start: daysAgo(1), MaxRetries: jobs.NoRetries, Func: func(context.Context, *jobs.Run) error { return errors.New("no") }}
	cfg := jobs.Config{Pool: pool, Channels: []alert.Channel{{Name: "ops", URL: l.URL, Secret: "s3cret"}}}
	_, _, stop := start(t, cfg, fails)
	pgtest.Eventually(t, 30*time.Second, "the death is sent", func() bool { return len(l.ids("dead")) > 0 })
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	// As after a kill in the middle of it: River's row says that somebody is at work.
	if _, err := pool.Exec(t.Context(), `update pawl.river_job set state = 'running', finalized_at = null, attempted_at = now() - interval '3 min' where queue = 'pawl_alerts'`); err != nil {
		t.Fatal(err)
	}
	l.mu.Lock()
	l.loses = 0
	l.mu.Unlock()
	start(t, cfg, fails)
	until(t, pool, 0, `select count(*) from pawl.river_job where queue = 'pawl_alerts' and state <> 'completed'`)
}

func TestAChannelThatCantBeUsedIsRefusedByNew(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	for want, cs := range map[string][]alert.Channel{
		"use https or http": {{Name: "ops", URL: "ftp://x.example/T0PSECRET"}},
		"is used twice":     {{Name: "ops", URL: "https://x.example/"}, {Name: "ops", URL: "https://y.example/"}},
	} {
		_, err := jobs.New(jobs.Config{Pool: pool, Channels: cs})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "T0PSECRET") {
			t.Errorf("New = %v, want %q", err, want)
		}
	}
}
