package ui_test

import (
	"encoding/csv"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"pawl/lockrepo/keys"
)

// much is a log of 2,500 entries, one of which a spreadsheet would calculate.
const much = `
insert into pawl.audit (at, actor, action, lock, token, job, period, reason, approver, detail)
select '2026-01-01 00:00:00Z'::timestamptz + n * interval '1 min', case n % 2 when 0 then 'ann' else 'bob' end, 'pause', null, null, 'settle', null, 'entry ' || lpad(n::text, 5, '0'), null, null
  from generate_series(1, 2500) n;
insert into pawl.audit (at, actor, action, lock, token, job, period, reason, approver, detail)
values ('2026-02-01Z', '=HYPERLINK("http://x")', 'force_release', 'ledger/<b>', 1796003875458249, null, null, E'@sum(1)\nsecond line, "quoted"', 'bob', '{"holder": "<script>alert(1)</script>", "kill": true, "approval": 7}')`

func TestTheAuditIsFilteredAndPagedByItsAddress(t *testing.T) {
	t.Parallel()
	s := staff(t, much, nil)
	all := s.get(t, "eve", "/ui/audit")
	all.has(t, "force release", "token <code>1796003875·<wbr>458249</code>", "approved by bob", "There are more", "&lt;script&gt;", `/ui/locks/ledger%2F%3Cb%3E`)
	all.lacks(t, "<script>alert", "<b>")
	first := s.get(t, "eve", "/ui/audit?job=settle")
	first.has(t, "entry 02500", "entry 02401", "before=2401", "/ui/audit.csv?job=settle")
	first.lacks(t, "entry 02400")
	s.get(t, "eve", "/ui/audit?before=2401&job=settle").has(t, "entry 02400")
	s.get(t, "eve", "/ui/audit?actor=ann&job=settle").lacks(t, "entry 02499")
	s.get(t, "eve", "/ui/audit?action=force_release").lacks(t, "entry")
	s.get(t, "eve", "/ui/audit?actor=nobody").has(t, "No entry fits")
	between := "/ui/audit?from=2026-01-01T00%3A03&to=2026-01-01T00%3A05"
	got := s.get(t, "eve", between)
	got.has(t, "entry 00003", "entry 00004", `value="2026-01-01T00:03"`)
	got.lacks(t, "entry 00005", "entry 00002")
	kolkata := send(t, http.MethodGet, s.URL+"/ui/audit?from=2026-01-01T05%3A33&to=2026-01-01T05%3A35", "Cookie", "pawl_zone=Asia/Kolkata; pawl_key="+s.bearer["eve"])
	kolkata.has(t, "entry 00003", "entry 00004", `value="2026-01-01T05:33"`, "(Asia/Kolkata)")
	kolkata.lacks(t, "entry 00005", "entry 00002")
	s.get(t, "eve", "/ui/audit?from=tomorrow").is(t, http.StatusUnprocessableEntity)
	s.get(t, "eve", "/ui/audit?before=-4").is(t, http.StatusUnprocessableEntity)
}

func TestTheAuditAsAFileIsWholeAndNoFormula(t *testing.T) {
	t.Parallel()
	s := staff(t, much, nil)
	got := s.get(t, "eve", "/ui/audit.csv")
	got.is(t, http.StatusOK)
	if ct, cd := got.header.Get("Content-Type"), got.header.Get("Content-Disposition"); !strings.HasPrefix(ct, "text/csv") || !strings.Contains(cd, "attachment") {
		t.Errorf("%s, %s", ct, cd)
	}
	rows, err := csv.NewReader(strings.NewReader(got.body)).ReadAll()
	if err != nil || len(rows) != 1+2501+4 { // the head, the log, the keys of the people
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	row := rows[5]
	if row[2] != `'=HYPERLINK("http://x")` || row[8] != "'@sum(1)\nsecond line, \"quoted\"" || row[5] != "1796003875458249" || row[9] != "bob" {
		t.Errorf("%q", row)
	}
	part := s.get(t, "eve", "/ui/audit.csv?actor=ann&job=settle&from=2026-01-01T00%3A03&to=2026-01-01T00%3A07")
	if rows, err := csv.NewReader(strings.NewReader(part.body)).ReadAll(); err != nil || len(rows) != 3 {
		t.Errorf("%d rows, %v: %s", len(rows), err, part.body)
	}
	s.get(t, "eve", "/ui/audit.csv?from=x").is(t, http.StatusUnprocessableEntity)
}

func TestAKeysSecretIsInTheAnswerToItsFormAndNowhereElse(t *testing.T) {
	t.Parallel()
	s := staff(t, days, nil)
	s.get(t, "eve", "/ui/keys").is(t, http.StatusForbidden)
	s.get(t, "ann", "/ui/keys").has(t, "eve", "reader", "may approve", "Make a key…", `aria-label="Revoke eve"`)
	if form := s.get(t, "ann", "/ui/keys/create"); strings.Contains(form.body, `name="approver"`) {
		t.Error("who may not approve may give that right")
	}
	s.get(t, "bob", "/ui/keys/create").has(t, `name="approver"`)
	s.post(t, "ann", "/ui/keys/create", url.Values{"name": {"x"}, "role": {"operator"}, "approver": {"yes"}}).is(t, http.StatusUnprocessableEntity)
	s.post(t, "ann", "/ui/keys/create", url.Values{"name": {"x"}, "role": {"king"}}).is(t, http.StatusUnprocessableEntity)
	s.post(t, "ann", "/ui/keys/create", url.Values{"name": {"x"}, "role": {"reader"}, "expires": {"2020-01-01T00:00"}}).is(t, http.StatusUnprocessableEntity)
	taken := s.post(t, "ann", "/ui/keys/create", url.Values{"name": {"eve"}, "role": {"reader"}, "prefix": {"a/"}})
	taken.is(t, http.StatusUnprocessableEntity)
	taken.has(t, "never used again", `value="a/"`)

	made := s.post(t, "ann", "/ui/keys/create", url.Values{"name": {"nightly"}, "role": {"operator"}})
	made.is(t, http.StatusOK)
	_, after, _ := strings.Cut(made.body, "<code>pawl_")
	secret, _, _ := strings.Cut(after, "</code>")
	if k, err := s.store.Check(t.Context(), "pawl_"+secret); err != nil || k.Name != "nightly" || k.Role != keys.Operator || k.CreatedBy != "ann" {
		t.Fatalf("%+v, %v", k, err)
	}
	if made.header.Get("Cache-Control") != "no-store" || made.header.Get("Location") != "" {
		t.Errorf("the secret may be kept: %v", made.header)
	}
	s.bearer["nightly"] = "pawl_" + secret
	_, secret, _ = strings.Cut(secret, "_")
	for _, path := range []string{"/ui/keys", "/ui/audit", "/ui/audit.csv", "/ui/locks", "/ui/keys/create", "/ui/approvals", "/ui/sign-in"} {
		for _, who := range []string{"ann", "nightly"} {
			if got := s.get(t, who, path); strings.Contains(got.body, secret) || strings.Contains(got.header.Get("Location"), secret) || got.status != http.StatusOK {
				t.Errorf("%s as %s = %d, with the secret: %v", path, who, got.status, strings.Contains(got.body, secret))
			}
		}
	}
	id := one(t, s.pool, `select id from pawl.keys where name = 'nightly'`)
	s.get(t, "ann", "/ui/keys/"+id+"/revoke").has(t, "Revoke key nightly", "by ann", "within a second")
	s.post(t, "ann", "/ui/keys/"+id+"/revoke", nil).goes(t, "/ui/keys")
	s.get(t, "nightly", "/ui/keys").goes(t, "/ui/sign-in?next=%2Fui%2Fkeys")
	s.post(t, "ann", "/ui/keys/"+id+"/revoke", nil).is(t, http.StatusConflict)
	s.get(t, "ann", "/ui/keys/nobody/revoke").is(t, http.StatusNotFound)
	if got := one(t, s.pool, `select string_agg(actor || ' ' || action, ',' order by id) from pawl.audit where detail ->> 'name' = 'nightly'`); got != "ann key_create,ann key_revoke" {
		t.Errorf("audit: %s", got)
	}
}
