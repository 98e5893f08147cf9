package jobs_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"pawl/jobs"
)

func runID(n string) uuid.UUID { return uuid.MustParse("00000000-0000-4000-8000-00000000000" + n) }

func kindsOf(d jobs.RunDetail) (kinds []string) {
	for _, e := range d.Events {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

// Run 1 of history lost its lease, and its holder went on writing; run 2 took over and completed.
func TestARunTellsHowItsLeaseWasLost(t *testing.T) {
	t.Parallel()
	h, pool := history(t)
	puts(t, pool,
		`insert into pawl.tenures (lock, token, grant_id, holder, acquired_at, expires_at, ended_at, how, successor, beats, longest_gap)
values ('job:settle', 100, '00000000-0000-4000-8000-000000000001', 'a/1', '2026-09-16 02:00Z', '2026-09-16 02:05Z', '2026-09-16 02:05Z', 'taken_over', 101, 28, '12.5 s'),
       ('job:settle', 101, '00000000-0000-4000-8000-000000000002', 'b/2', '2026-09-16 02:05:30Z', '2026-09-16 02:09:30Z', '2026-09-16 02:09Z', 'released', null, 1, '0')`,
		`insert into pawl.checkpoints (job, key, revision, token, operation, at, value) values ('settle', '2026-09-15', 1, 101, gen_random_uuid(), '2026-09-16 02:08Z', '{"row": 7}')`,
		`update pawl.refusals set at = '2026-09-16 02:06Z'`,
		`insert into pawl.refusals (at, lock, token, passed, nth) values ('2026-09-16 02:06Z', 'job:settle', 100, true, null)`,
		`insert into pawl.events (kind, subject, at, job, period, revision, run, detail) values
 ('late', 'settle/2026-09-15/1', '2026-09-16 01:59Z', 'settle', '2026-09-15', 1, null, '{}'), ('timeout', '00000000-0000-4000-8000-000000000001/near', '2026-09-16 02:04Z', 'settle', '2026-09-15', 1, '00000000-0000-4000-8000-000000000001', '{"timeout": "5m"}'),
 ('stale_claim', 'job:settle/100', '2026-09-16 02:05Z', null, null, null, null, '{}'), ('late', 'settle/2026-09-16/1', now(), 'settle', '2026-09-16', 1, null, '{}')`)
	d, err := h.Run(t.Context(), runID("1"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := kindsOf(d), []string{"refused", "taken_over", "expired", "beats", "ended", "progress", "alert", "acquired", "alert"}; !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
	if text := d.Events[0].Text; text != "A write to settlement was refused, 31s after the lease ended: insert into settlement" {
		t.Errorf("refusal: %s", text)
	}
	if text := d.Events[1].Text; text != "b/2 took the lock over with the token 101" {
		t.Errorf("takeover: %s", text)
	}
	if d.Beats != 28 || d.LongestGap.Duration() != 12500*time.Millisecond || d.Lease.How != "taken_over" || d.Lease.Holder != "a/1" || d.EventsMore {
		t.Errorf("lease %+v", d.Lease)
	}
	if len(d.Attempts) != 2 || d.Attempts[0].Token != 100 || d.Period.State != "complete" || d.MaxAttempts != 6 || d.Params != nil {
		t.Errorf("attempts %+v, period %+v, %d, params %s", d.Attempts, d.Period, d.MaxAttempts, d.Params)
	}
	if d.Checkpoint != `{"row": 7}` || d.CheckpointToken != 101 || d.CheckpointCut || d.Output != nil {
		t.Errorf("checkpoint %q of %d, output %v", d.Checkpoint, d.CheckpointToken, d.Output)
	}
	for _, e := range d.Events {
		if e.At.Location() != time.UTC || e.Token != 100 {
			t.Errorf("%+v: not UTC, or another token", e)
		}
	}
	if d, err = h.Run(t.Context(), runID("2")); err != nil || !slices.Equal(kindsOf(d), []string{"ended", "progress", "beats", "checkpoint", "acquired", "alert"}) && !slices.Equal(kindsOf(d), []string{"beats", "ended", "progress", "checkpoint", "acquired", "alert"}) {
		t.Errorf("events of run 2: %q, %v", kindsOf(d), err)
	}
}

func TestARunningRunHasALiveLease(t *testing.T) {
	t.Parallel()
	h, pool := history(t)
	puts(t, pool, `update pawl.locks set beats = 3, longest_gap = '11 s' where name = 'job:settle'`)
	d, err := h.Run(t.Context(), runID("3"))
	if err != nil || d.Lease.How != "held" || d.Lease.EndedAt != nil || d.Beats != 3 || !slices.Contains(kindsOf(d), "beats") || d.Lease.Holder != "b/2" {
		t.Errorf("%+v, %v", d.Lease, err)
	}
	puts(t, pool, `update pawl.locks set expires_at = now() - interval '1 s' where name = 'job:settle'`)
	if d, err = h.Run(t.Context(), runID("3")); err != nil || d.Lease.How != "expired" || d.Lease.EndedAt == nil || !slices.Contains(kindsOf(d), "expired") {
		t.Errorf("%+v, %v", d.Lease, err)
	}
	puts(t, pool, `update pawl.locks set grant_id = null, holder = null, expires_at = null where name = 'job:settle'`, `delete from pawl.periods where key = '2026-09-16'`,
		`insert into pawl.tenures (lock, token, grant_id, ended_at, how) values ('job:settle', 102, gen_random_uuid(), now(), 'forced')`)
	if d, err = h.Run(t.Context(), runID("3")); err != nil || d.Lease.How != "forced" || !slices.Contains(kindsOf(d), "forced") || d.Period.Key != "2026-09-16" || d.Period.State != "" {
		t.Errorf("%+v, %+v, %v", d.Lease, d.Period, err)
	}
	if _, err := json.Marshal(d); err != nil {
		t.Error(err)
	}
	puts(t, pool, `delete from pawl.tenures`, `delete from pawl.locks`)
	if d, err = h.Run(t.Context(), runID("3")); err != nil || d.Lease != (jobs.RunLease{Lock: "job:settle", Token: 102}) {
		t.Errorf("without its history: %+v, %v", d.Lease, err)
	}
}

func TestWhatIsLargeIsCut(t *testing.T) {
	t.Parallel()
	h, pool := history(t)
	puts(t, pool,
		`insert into pawl.checkpoints (job, key, revision, token, operation, value) values ('settle', '2026-09-15', 1, 101, gen_random_uuid(), to_jsonb(repeat('€', 5000)))`,
		`insert into pawl.outputs (run, job, head, tail, bytes) values ('00000000-0000-4000-8000-000000000001', 'x', convert_to('A' || repeat('h', 10000), 'utf8'), convert_to(repeat('t', 10000) || 'Z', 'utf8'), 1000000),
  ('00000000-0000-4000-8000-000000000002', 'x', convert_to('A' || repeat('h', 5000) || 'Z', 'utf8'), '', 5002), ('00000000-0000-4000-8000-000000000003', 'x', 'short', '', 5)`,
		`insert into pawl.refusals (at, lock, token, statement) select now() - n * interval '1 s', 'job:settle', 100, repeat('x', 10000) from generate_series(1, 300) n`)
	d, err := h.Run(t.Context(), runID("1"))
	if err != nil || len(d.Checkpoint) > 4096 || len(d.Checkpoint) < 4090 || !utf8.ValidString(d.Checkpoint) || !d.CheckpointCut {
		t.Errorf("checkpoint of %d bytes, cut %v, %v", len(d.Checkpoint), d.CheckpointCut, err)
	}
	if len(d.Events) != 200 || !d.EventsMore || d.Events[0].Kind != "refused" || d.Events[0].At.Before(d.Events[1].At) || len(d.Events[0].Text) > 400 {
		t.Errorf("%d events, more %v, the first %.100v", len(d.Events), d.EventsMore, d.Events[0])
	}
	for n, want := range map[string]struct {
		head, tail int
		cut        bool
	}{"1": {4096, 4096, true}, "2": {4096, 906, false}, "3": {5, 0, false}} {
		d, err := h.Run(t.Context(), runID(n))
		if err != nil || d.Output == nil {
			t.Errorf("run %s: %v, %v", n, d.Output, err)
			continue
		}
		o := d.Output
		if len(o.Head) != want.head || len(o.Tail) != want.tail || o.Cut() != want.cut || n != "3" && (o.Head[0] != 'A' || !strings.HasSuffix(string(o.Tail), "Z")) {
			t.Errorf("run %s: head %d, tail %d, cut %v, want %+v", n, len(o.Head), len(o.Tail), o.Cut(), want)
		}
	}
}

func TestARunThatNeverWasIsUnknown(t *testing.T) {
	t.Parallel()
	h, _ := history(t)
	if _, err := h.Run(t.Context(), uuid.New()); !errors.Is(err, jobs.ErrUnknownRun) || strings.Contains(err.Error(), "read run") {
		t.Errorf("Run = %v", err)
	}
}

func TestParametersAreShownUnlessTheyAreLarge(t *testing.T) {
	t.Parallel()
	h, pool := history(t)
	puts(t, pool, `alter table pawl.periods add column if not exists params jsonb`, `update pawl.periods set params = '{"mode": "dry"}' where job = 'settle'`)
	if d, err := h.Run(t.Context(), runID("1")); err != nil || string(d.Params) != `{"mode": "dry"}` || d.ParamsCut {
		t.Errorf("params %s, cut %v, %v", d.Params, d.ParamsCut, err)
	}
	puts(t, pool, `update pawl.periods set params = jsonb_build_object('x', repeat('y', 5000)) where job = 'settle'`)
	if d, err := h.Run(t.Context(), runID("1")); err != nil || d.Params != nil || !d.ParamsCut {
		t.Errorf("params %.20s, cut %v, %v", d.Params, d.ParamsCut, err)
	}
}
