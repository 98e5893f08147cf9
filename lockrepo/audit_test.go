package lockrepo

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pawl/internal/pgtest"
)

// acts lists entries by what they are called.
func acts(t *testing.T, r *Repo, f AuditFilter) string {
	t.Helper()
	all, err := r.Audit(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range all {
		out = append(out, e.Action)
	}
	return strings.Join(out, " ")
}

func TestTheAuditIsFoundByWhoWhatWhereAndWhen(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	r := newRepo(t, pool, "a")
	if all, err := r.Audit(t.Context(), AuditFilter{}); err != nil || all == nil || len(all) != 0 {
		t.Errorf("an empty log: %v, %v", all, err)
	}
	start := time.Date(2026, 9, 16, 10, 0, 0, 0, time.UTC)
	for i, values := range []string{
		`'ann', 'a0', 'L', 7, null, null, 'holder is stuck', 'bob', '{"kill": true}'`,
		`'ann', 'a1', null, null, 'settle', '2026-09-16', null, null, null`,
		`'bob', 'a2', 'L', 8, null, null, null, null, null`,
		`'bob', 'a1', null, null, 'other', null, null, null, null`,
	} {
		run(t, pool, `insert into pawl.audit (at, actor, action, lock, token, job, period, reason, approver, detail) values ($1, `+values+`)`, start.Add(time.Duration(i)*time.Minute))
	}
	for _, c := range []struct {
		f    AuditFilter
		want string
	}{
		{AuditFilter{}, "a1 a2 a1 a0"},
		{AuditFilter{Limit: 1}, "a1"},
		{AuditFilter{Before: 3}, "a1 a0"},
		{AuditFilter{Actor: "ann"}, "a1 a0"},
		{AuditFilter{Action: "a1"}, "a1 a1"},
		{AuditFilter{Lock: "L"}, "a2 a0"},
		{AuditFilter{Job: "settle"}, "a1"},
		{AuditFilter{Actor: "bob", Action: "a1", Job: "other"}, "a1"},
		{AuditFilter{From: start.Add(time.Minute)}, "a1 a2 a1"},
		{AuditFilter{To: start.Add(time.Minute)}, "a0"},
		{AuditFilter{From: start.Add(time.Second), To: start.Add(2 * time.Minute)}, "a1"},
		{AuditFilter{From: start.Add(time.Hour)}, ""},
		{AuditFilter{To: start}, ""},
		{AuditFilter{Actor: "' or true --"}, ""},
	} {
		if got := acts(t, r, c.f); got != c.want {
			t.Errorf("%+v: %q, want %q", c.f, got, c.want)
		}
	}
	all, err := r.Audit(t.Context(), AuditFilter{})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, all[3], `{"id":1,"at":"#","actor":"ann","action":"a0","lock":"L","token":7,"job":"","period":"","reason":"holder is stuck","approver":"bob","detail":{"kill":true}}`)
	golden(t, all[2], `{"id":2,"at":"#","actor":"ann","action":"a1","lock":"","token":null,"job":"settle","period":"2026-09-16","reason":"","approver":"","detail":null}`)
	if actions, err := r.AuditActions(t.Context()); err != nil || fmt.Sprint(actions) != "[a0 a1 a2]" {
		t.Errorf("actions %v, %v", actions, err)
	}
}

func TestTheAuditRefusesAFilterThatIsNone(t *testing.T) {
	t.Parallel()
	r := newRepo(t, pgtest.New(t), "a")
	now := time.Now()
	for want, f := range map[string]AuditFilter{
		"isn't before to":     {From: now, To: now},
		"before is negative":  {Before: -1},
		"limit 1001":          {Limit: 1001},
		`actor "\xff" is not`: {Actor: "\xff"},
		`job "\x00" is not`:   {Job: "\x00"},
	} {
		if _, err := r.Audit(t.Context(), f); !is(err, ErrInput) || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", f, err, want)
		}
	}
}

// Ten thousand replans must not be read to find the one release by force among them.
func TestAPageOfTheAuditReadsNoMoreThanItShows(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	must(t, pool,
		`insert into pawl.audit (at, actor, action, lock, job)
		 select timestamptz '2026-09-16 10:00Z' + n * interval '1 min', 'app ' || n % 5, 'replan', case when n % 3 = 0 then 'L' || n % 30 end, 'job ' || n % 70 from generate_series(1, 30000) n`,
		`insert into pawl.audit (at, actor, action, lock, job) values ('2026-09-16 10:00:30Z', 'ann', 'force_release', 'rare', 'rare')`,
		`vacuum analyze pawl.audit`)
	from := time.Date(2026, 9, 20, 0, 0, 0, 0, time.UTC)
	for _, f := range []AuditFilter{
		{},
		{Before: 15000},
		{Actor: "ann"},
		{Action: "force_release"},
		{Lock: "rare"},
		{Job: "rare"},
		{Actor: "app 1"},
		{Job: "job 7", Before: 9000},
		{From: from, To: from.Add(30 * time.Minute)},
		{From: from, To: from.Add(time.Hour), Actor: "nobody"},
		{From: from},
		{To: from},
		{Actor: "ann", Action: "force_release", Lock: "rare", Job: "rare"},
	} {
		sql, args, err := f.sql()
		if err != nil {
			t.Fatal(err)
		}
		readsLittle(t, pool, 101, sql, args...)
	}
	readsLittle(t, pool, 10, actionsSQL)
}
