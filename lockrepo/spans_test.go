package lockrepo

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pawl/fence"
	"pawl/internal/pgtest"
)

// told lists spans: lock, how, the ended ones with a full stop, and how many refusals.
func told(spans []Span) string {
	var out []string
	for _, s := range spans {
		line := s.Lock + " " + s.How
		if s.EndedAt != nil {
			line += "."
		}
		if n := len(s.Refusals); n > 0 {
			line += fmt.Sprint(" x", n)
		}
		out = append(out, line)
	}
	return strings.Join(out, ", ")
}

func mustSpans(t *testing.T, r *Repo, f SpanFilter) []Span {
	t.Helper()
	all, err := r.Spans(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestATimelineShowsLiveAndEndedLeasesWithTheirRefusedWrites(t *testing.T) {
	t.Parallel()
	ctx, pool := t.Context(), pgtest.New(t)
	r := newRepo(t, pool, "a")
	if got := mustSpans(t, r, SpanFilter{}); got == nil || len(got) != 0 {
		t.Errorf("an empty database has spans %v", got)
	}
	if got := mustSpans(t, r, SpanFilter{Lock: "nobody's"}); len(got) != 0 {
		t.Errorf("a lock that doesn't exist has spans %v", got)
	}
	if err := r.Release(ctx, mustAcquire(t, r, "free")); err != nil {
		t.Fatal(err)
	}
	old := mustAcquire(t, r, "taken")
	expire(t, pool, "taken")
	heir, err := newRepo(t, pool, "b").AcquireRequest(ctx, Request{Lock: "taken", Key: "k", RequestID: "r-1", TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := fence.Refused(ctx, pool, old.Token, "public.ledger", "insert into ledger"); err != nil {
			t.Fatal(err)
		}
	}
	run(t, pool, `insert into pawl.refusals (lock, token, passed, nth) values ('taken', $1, true, null)`, old.Token.Seq)
	mustAcquire(t, r, "stale")
	expire(t, pool, "stale")

	all := mustSpans(t, r, SpanFilter{})
	if got, want := told(all), "free released., stale expired., taken taken_over. x2, taken held"; got != want {
		t.Errorf("spans %q, want %q", got, want)
	}
	was, is := all[2], all[3]
	if was.Token != old.Token.Seq || was.Successor == nil || *was.Successor != heir.Token.Seq || was.Holder != "a" || was.RenewedAt != nil ||
		!was.AcquiredAt.Equal(old.AcquiredAt) || was.RefusalsMore || was.Refusals[0].Target != "public.ledger" || was.Refusals[0].Late <= 0 {
		t.Errorf("the old lease: %+v", was)
	}
	if is.Holder != "b" || is.Key != "k" || is.RequestID != "r-1" || is.EndedAt != nil || is.Successor != nil || is.RenewedAt == nil ||
		!is.ExpiresAt.Equal(heir.ExpiresAt) || is.AcquiredAt.Location() != time.UTC {
		t.Errorf("the live lease: %+v", is)
	}
	if got := told(mustSpans(t, r, SpanFilter{Locks: 1})); got != "taken taken_over. x2, taken held" {
		t.Errorf("of the lock that was active last: %q", got)
	}
	if got := told(mustSpans(t, r, SpanFilter{Lock: "taken", Limit: 1})); got != "taken held" {
		t.Errorf("the newest of a lock: %q", got)
	}
	if got := told(mustSpans(t, r, SpanFilter{Lock: "taken", To: heir.AcquiredAt})); got != "taken taken_over. x2" {
		t.Errorf("before the takeover: %q", got)
	}
}

func TestASpanKeepsFiftyMarksAndSaysThatThereAreMore(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	r := newRepo(t, pool, "a")
	l := mustAcquire(t, r, "x")
	for n, more := range map[int]bool{50: false, 51: true, 60: true} {
		must(t, pool, `truncate pawl.refusals`, fmt.Sprintf(`insert into pawl.refusals (lock, token, at, target) select 'x', %d, 'epoch'::timestamptz + n * interval '1 s', 't' || n from generate_series(1, %d) n`, l.Token.Seq, n))
		s := mustSpans(t, r, SpanFilter{Lock: "x"})[0]
		if len(s.Refusals) != 50 || s.RefusalsMore != more || s.Refusals[49].Target != fmt.Sprint("t", n) || !s.Refusals[0].At.Before(s.Refusals[49].At) {
			t.Errorf("of %d: %d marks, more %v, %v", n, len(s.Refusals), s.RefusalsMore, s.Refusals)
		}
	}
}

func TestASpanShowsItsRunsCheckpoint(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	r := newRepo(t, pool, "a")
	l := mustAcquire(t, r, "x")
	run(t, pool, `insert into pawl.runs (id, job, key, revision, attempt, lock, token) values ($1, 'settle', '2026-09-16', 1, 1, 'x', $2)`, l.Grant, l.Token.Seq)
	if s := mustSpans(t, r, SpanFilter{Lock: "x"})[0]; len(s.Checkpoints) != 0 {
		t.Errorf("checkpoints %v before there is one", s.Checkpoints)
	}
	run(t, pool, `insert into pawl.checkpoints (job, key, revision, token, operation, at) values ('settle', '2026-09-16', 1, $1, gen_random_uuid(), '2026-09-16 10:00Z')`, l.Token.Seq)
	if s := mustSpans(t, r, SpanFilter{Lock: "x"})[0]; len(s.Checkpoints) != 1 || s.Checkpoints[0].Format(time.RFC3339) != "2026-09-16T10:00:00Z" {
		t.Errorf("checkpoints %v", s.Checkpoints)
	}
	run(t, pool, `update pawl.checkpoints set token = token + 1`)
	if s := mustSpans(t, r, SpanFilter{Lock: "x"})[0]; len(s.Checkpoints) != 0 {
		t.Errorf("another run's checkpoint is shown: %v", s.Checkpoints)
	}
}

// Every window, at the edges of the leases and between them, shows what a search of all of them finds.
func TestAWindowShowsWhatOverlapsIt(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	r := newRepo(t, pool, "a")
	start := time.Date(2026, 9, 16, 10, 0, 0, 0, time.UTC)
	at := func(i int) time.Time { return start.Add(time.Duration(i) * time.Second) }
	for i := range 12 { // from 10i to 10i+6; tokens have gaps of all sizes
		run(t, pool, `insert into pawl.tenures (lock, token, grant_id, acquired_at, expires_at, ended_at, how) values ('x', $1, gen_random_uuid(), $2, $3, $3, 'released')`,
			int64(1)<<(4*i)+5, at(10*i), at(10*i+6))
	}
	run(t, pool, `insert into pawl.tenures (lock, token, grant_id, ended_at, how) values ('unknown', 1, gen_random_uuid(), $1, 'forced')`, at(3)) // nobody wrote down when it was acquired
	for from := -2; from < 122; from += 3 {
		for to := from + 1; to < 125; to += 4 {
			var want []int64
			for i := range 12 {
				if 10*i < to && 10*i+6 >= from {
					want = append(want, int64(1)<<(4*i)+5)
				}
			}
			var got []int64
			for _, s := range mustSpans(t, r, SpanFilter{Lock: "x", From: at(from), To: at(to)}) {
				got = append(got, s.Token)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("from %d to %d: %v, want %v", from, to, got, want)
			}
		}
	}
	if got := told(mustSpans(t, r, SpanFilter{From: at(1), To: at(5)})); got != "unknown forced., x released." {
		t.Errorf("all locks, before their ends: %q", got)
	}
	if got := told(mustSpans(t, r, SpanFilter{From: at(7), To: at(9)})); got != "" {
		t.Errorf("between two: %q", got)
	}
}

func TestSpansRefuseAWindowThatIsNone(t *testing.T) {
	t.Parallel()
	r := newRepo(t, pgtest.New(t), "a")
	now := time.Now()
	for want, f := range map[string]SpanFilter{
		"isn't before to":     {From: now, To: now},
		"locks 101":           {Locks: 101},
		"locks -1":            {Locks: -1},
		"limit 1001":          {Limit: 1001},
		"is not UTF-8 text: ": {Lock: "\xff"},
	} {
		if _, err := r.Spans(t.Context(), f); !is(err, ErrInput) || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", f, err, want)
		}
	}
}

// A timeline reads what it shows, however long the history is and wherever in it the window lies.
func TestATimelineReadsNoMoreHistoryThanItShows(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	seed(t, pool)
	now := time.Now()
	past := now.Add(-3 * time.Hour)
	r := newRepo(t, pool, "a")
	for _, f := range []SpanFilter{{}, {From: now.Add(-time.Hour)}, {From: past, To: past.Add(time.Minute)}, {From: now.Add(-time.Hour), To: now}} {
		readsLittleBut(t, pool, present(), 1000, activeSQL, known(f.From), known(f.To), 12)
		locks, err := r.active(t.Context(), SpanFilter{From: f.From, To: f.To, Locks: 12})
		if err != nil {
			t.Fatal(err)
		}
		readsLittle(t, pool, 12*100, spansSQL, locks, known(f.From), known(f.To), 100, maxMarks+1)
		readsLittle(t, pool, 100, spansSQL, []string{"busy"}, known(f.From), known(f.To), 100, maxMarks+1)
	}
	if all := mustSpans(t, r, SpanFilter{Lock: "busy", From: past, To: past.Add(time.Minute)}); len(all) < 60 || len(all) > 61 {
		t.Errorf("%d leases in a minute of three hours ago, one a second", len(all))
	}
	if all := mustSpans(t, r, SpanFilter{Locks: 3, Limit: 2}); len(all) != 6 || all[5].How != Held {
		t.Errorf("the last two of three locks: %s", told(all))
	}
}
