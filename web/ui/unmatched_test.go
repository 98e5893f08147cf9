package ui_test

import (
	"net/http"
	"strings"
	"testing"
)

const differences = `;
insert into pawl.effect_differences (job, idempotency_key, kind, effect, detail, first_at) values
 ('payout', 'payout:2026-09-16/bolt', 'absent', 2, '{"iban": "DE02"}', now() - interval '3 h'),
 ('payout', 'payout:2026-09-16/acme', 'stray', 1, 'for us it is uncertain: 42.00', now() - interval '2 h'),
 ('payout', 'payout:x/strange', 'stray', null, '17.00', now() - interval '1 h')`

func TestWhatTheOtherSideSaysDifferentlyIsListedWithWhatToDo(t *testing.T) {
	t.Parallel()
	s := staff(t, payouts+differences, nil)
	page := s.get(t, "ann", "/ui/effects?state=unmatched")
	page.has(t, "Unmatched effects</h2>", "payout:2026-09-16/bolt", "they haven’t got it", "Ask them by the key", "only they have it", "It has happened: decide that it is done",
		"no effect has this key", "Somebody else sends under such keys", "DE02", "42.00", `href="/ui/periods/payout/2026-09-16"`, `aria-current="page">Unmatched</a>`)
	if n := strings.Count(page.body, "/decide"); n != 1 || !strings.Contains(page.body, `href="/ui/effects/1/decide"`) {
		t.Errorf("%d of them may be decided, want the uncertain one", n)
	}
	if strings.Index(page.body, "/bolt") > strings.Index(page.body, "/acme") {
		t.Error("the oldest isn't the first")
	}
	reader := s.get(t, "eve", "/ui/effects?state=unmatched")
	reader.has(t, "payout:2026-09-16/bolt")
	reader.lacks(t, "DE02", "42.00", "17.00", "/decide") // what was sent isn't for readers
	s.get(t, "eve", "/").lacks(t, "DE02", "42.00", "17.00")
	s.get(t, "ann", "/ui/effects?state=unmatched&job=nobody").has(t, "Both sides say the same")
	s.get(t, "ann", "/ui/effects?state=unmatched&period=2026-09-16").lacks(t, "strange")
	s.get(t, "ann", "/ui/effects?state=unmatched&after=x").is(t, http.StatusUnprocessableEntity)
	s.get(t, "ann", "/ui/effects?state=uncertain&job=payout").has(t, `href="/ui/effects?job=payout&amp;state=unmatched"`, `aria-current="page">Uncertain</a>`)
	s.get(t, "ann", "/").has(t, "Unmatched effects</h2>", "/strange", `href="/ui/effects?state=unmatched"`)
}

func TestUnmatchedEffectsComeInPages(t *testing.T) {
	t.Parallel()
	srv, _ := open(t, payouts+`;
insert into pawl.effect_differences (job, idempotency_key, kind, first_at) select 'payout', 'k' || lpad(n::text, 3, '0'), 'stray', now() from generate_series(1, 250) n`, nil)
	all, pages := rows(t, srv.URL, "/ui/effects?state=unmatched", `class="key who"><span>`)
	if pages != 3 || len(all) != 250 || all[0] != "k001" || all[249] != "k250" {
		t.Errorf("%d pages with %d differences, want 3 with 250", pages, len(all))
	}
	send(t, http.MethodGet, srv.URL+"/").has(t, "The oldest 10. There are more: <a href=\"/ui/effects?state=unmatched\"")
}
