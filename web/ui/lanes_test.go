package ui

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pawl/lockrepo"
)

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func ago(minutes float64) time.Time { return noon.Add(-time.Duration(minutes * float64(time.Minute))) }

func when(minutes float64) *time.Time {
	t := ago(minutes)
	return &t
}

func drawn(t *testing.T, zone *time.Location, spans ...lockrepo.Span) (lanes, string) {
	t.Helper()
	p := &page{view: view{Now: noon}, Zone: zone}
	l := p.Lanes(timeline{Panel: Panel[lockrepo.Span]{Rows: spans}, Last: 30 * time.Minute})
	var b strings.Builder
	if err := templates().ExecuteTemplate(&b, "lanes", l); err != nil {
		t.Fatal(err)
	}
	return l, b.String()
}

func TestALaneShowsTheOldHolderItsRefusedWritesAndTheTakeover(t *testing.T) {
	t.Parallel()
	heir := int64(8)
	l, html := drawn(t, time.UTC,
		lockrepo.Span{Lock: "x", Token: 7, Holder: "old", AcquiredAt: ago(60), EndedAt: when(15), How: "taken_over", Successor: &heir,
			Refusals: []lockrepo.Mark{{At: ago(9)}, {At: ago(6)}}, Checkpoints: []time.Time{ago(21), ago(45)}},
		lockrepo.Span{Lock: "x", Token: 8, Holder: "new", AcquiredAt: ago(12), RenewedAt: when(0.1), ExpiresAt: when(-0.4), How: "held"})
	was, is := l.Rows[0].Bars[0], l.Rows[0].Bars[1]
	if was.Tooth || was.At != (stretch{0, 50}) || *was.Unowned != (stretch{50, 60}) || was.Edge != "bad" || fmt.Sprint(was.Checkpointed) != "[30]" {
		t.Errorf("the old lease: %+v", was)
	}
	if g := was.Ghost; g.stretch != (stretch{50, 80}) || fmt.Sprint(g.Marks) != "[70 80]" || !g.Left {
		t.Errorf("its ghost: %+v", g)
	}
	if !is.Tooth || !is.Over || is.Class != "held" || is.At != (stretch{60, 100}) || is.Silent != nil || is.Ghost != nil {
		t.Errorf("the live lease: %+v", is)
	}
	const want = "x: token 7, old, from 11:00:00, expired 11:45:00 without release, then 2 writes refused; token 8, new, from 11:48:00, still held."
	if l.Rows[0].Label != want || !strings.Contains(html, `role="img" aria-label="`+want+`"`) {
		t.Errorf("it is said as %q", l.Rows[0].Label)
	}
	for class, n := range map[string]int{"rej": 2, "ghost": 1, "unowned": 1, "edge-bad": 1, "tooth over": 1, "chk": 1} {
		if got := strings.Count(html, `class="`+class+`"`); got != n {
			t.Errorf("%d of class %q, want %d", got, class, n)
		}
	}
}

func TestASilentHolderIsHatchedFromItsLastBeat(t *testing.T) {
	t.Parallel()
	l, _ := drawn(t, time.UTC,
		lockrepo.Span{Lock: "expired", Token: 1, AcquiredAt: ago(30), RenewedAt: when(18), EndedAt: when(15), ExpiresAt: when(15), How: "expired"},
		lockrepo.Span{Lock: "late", Token: 1, AcquiredAt: ago(30), RenewedAt: when(3), ExpiresAt: when(-1), How: "held"},
		lockrepo.Span{Lock: "well", Token: 1, AcquiredAt: ago(30), RenewedAt: when(2), ExpiresAt: when(-2), How: "held"})
	gone, late, well := l.Rows[0].Bars[0], l.Rows[1].Bars[0], l.Rows[2].Bars[0]
	if *gone.Silent != (stretch{40, 50}) || gone.At != (stretch{0, 40}) || *gone.Unowned != (stretch{50, 100}) {
		t.Errorf("nobody's: %+v", gone)
	}
	if late.Silent == nil || *late.Silent != (stretch{90, 100}) || well.Silent != nil {
		t.Errorf("late: %+v, well: %+v", late.Silent, well.Silent)
	}
}

func TestAReleaseByForceIsAnEdgeOfItsOwn(t *testing.T) {
	t.Parallel()
	l, html := drawn(t, time.UTC,
		lockrepo.Span{Lock: "x", Token: 1, AcquiredAt: ago(20), EndedAt: when(15), How: "forced"},
		lockrepo.Span{Lock: "x", Token: 2, AcquiredAt: ago(10), EndedAt: when(5), How: "released"},
		lockrepo.Span{Lock: "x", Token: 3, AcquiredAt: ago(4), How: "held"})
	bars := l.Rows[0].Bars
	if bars[0].Edge != "forced" || bars[0].Unowned != nil || !bars[1].Over || bars[1].Edge != "" || bars[2].Over {
		t.Errorf("%+v", bars)
	}
	if !strings.Contains(html, "released by force 11:45:00") {
		t.Error("the table doesn't say so")
	}
}

func TestTheAxisHasRoundTimesOfTheReadersZone(t *testing.T) {
	t.Parallel()
	kolkata, _ := zone("Asia/Kolkata")
	for length, want := range map[time.Duration]string{
		30 * time.Minute: "17:05 17:10 17:15 17:20 17:25", 6 * time.Hour: "12:00 13:00 14:00 15:00 16:00 17:00",
		24 * time.Hour: "20:00 00:00 04:00 08:00 12:00 16:00", 7 * 24 * time.Hour: "23\u00a0Nov 24\u00a0Nov 25\u00a0Nov 26\u00a0Nov 27\u00a0Nov 28\u00a0Nov 29\u00a0Nov",
		40 * time.Second: "17:29:25 17:29:30 17:29:35 17:29:40 17:29:45 17:29:50 17:29:55",
	} {
		var got []string
		for _, tk := range ticks(window{noon.Add(-length), noon}, kolkata) {
			got = append(got, tk.Label)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%v: %q, want %q", length, got, want)
		}
	}
}

func TestAnEndlessLaneIsReadOutInPart(t *testing.T) {
	t.Parallel()
	var spans []lockrepo.Span
	for i := range int64(100) {
		spans = append(spans, lockrepo.Span{Lock: "x", Token: i, AcquiredAt: ago(30), EndedAt: when(29), How: "released"})
	}
	l, _ := drawn(t, time.UTC, spans...)
	if label := l.Rows[0].Label; !strings.HasPrefix(label, "x: the newest 12 leases; token 88,") {
		t.Errorf("it is said as %.80q", label)
	}
	kept, cut := cutEach(spans, 20)
	if len(kept) != 20 || kept[0].Token != 80 || len(cut) != 1 {
		t.Errorf("kept %d from %d on, cut %q", len(kept), kept[0].Token, cut)
	}
}

func TestAPictureWithoutTimeOrSpansIsDrawnToo(t *testing.T) {
	t.Parallel()
	if l, html := drawn(t, time.UTC); len(l.Rows) != 0 || strings.Contains(html, "NaN") {
		t.Error("an empty picture is wrong")
	}
	p := &page{Zone: time.UTC}
	spans := []lockrepo.Span{{Lock: "x", AcquiredAt: noon}}
	if got := p.Lanes(timeline{Panel: Panel[lockrepo.Span]{Rows: spans}, From: noon, To: noon}).Rows[0].Bars[0].At.X; got != 100 {
		t.Errorf("a time of no length puts its lease at %v", got)
	}
}
