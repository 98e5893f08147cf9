package approvals

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pawl/lockrepo"
	"pawl/lockrepo/keys"
)

func TestARequestIsForTheLeaseThatIsThere(t *testing.T) {
	t.Parallel()
	s := open(t)
	old := s.release(ann)
	old.Token--
	if _, err := s.store.RequestRelease(t.Context(), old); !errors.Is(err, lockrepo.ErrNotHeld) || !strings.Contains(err.Error(), "the lock is held with token") {
		t.Errorf("%v, want ErrNotHeld and what there is", err)
	}
	nobody := s.release(ann)
	nobody.Lock = "nobody"
	if _, err := s.store.RequestRelease(t.Context(), nobody); !errors.Is(err, lockrepo.ErrNotFound) {
		t.Errorf("%v, want ErrNotFound", err)
	}
	if got := s.run(t, `select ((select count(*) from pawl.approvals) + (select count(*) from pawl.audit))::text`); got != "0" {
		t.Errorf("%s rows are left", got)
	}
}

func TestAKeyAsksOnlyAsOperatorAndForItsLocks(t *testing.T) {
	t.Parallel()
	s := open(t)
	for _, k := range []keys.Key{
		{Name: "worker", Role: keys.Worker}, {Name: "approver", Role: keys.Worker, Approver: true}, {Name: "elsewhere", Role: keys.Operator, Prefix: "y/"},
	} {
		if _, err := s.store.RequestRelease(t.Context(), s.release(s.key(t, k))); !errors.Is(err, ErrNotOperator) {
			t.Errorf("%s: %v, want ErrNotOperator", k.Name, err)
		}
	}
	operator := s.key(t, keys.Key{Name: "operator", Role: keys.Operator})
	if q := s.asked(t, operator); q.RequestedByID != operator.ID || q.RequestedBy != "operator" {
		t.Errorf("%+v", q)
	}
}

func TestBadInputIsRefusedInOneSentence(t *testing.T) {
	t.Parallel()
	s := open(t)
	for want, change := range map[string]func(r *Release){
		"reason has 9 characters: give at least 10": func(r *Release) { r.Reason = "  too short " },
		"reason has 2001 characters":                func(r *Release) { r.Reason = strings.Repeat("é", 2001) },
		"or some that are not UTF-8":                func(r *Release) { r.Reason = "worker hangs\x00" },
		`lock name "" is empty`:                     func(r *Release) { r.Lock = "" },
		"token is 0":                                func(r *Release) { r.Token = 0 },
		"valid is 59s: give 1m0s to 1h0m0s":         func(r *Release) { r.Valid = 59 * time.Second },
		"valid is 1h0m1s":                           func(r *Release) { r.Valid = time.Hour + time.Second },
		`person's id "" is empty`:                   func(r *Release) { r.By = Person{Name: "ann"} },
		`person's name "a\nb"`:                      func(r *Release) { r.By.Name = "a\nb" },
	} {
		r := s.release(ann)
		change(&r)
		if _, err := s.store.RequestRelease(t.Context(), r); !errors.Is(err, lockrepo.ErrInput) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want one sentence with %q", err, want)
		}
	}
	for want, f := range map[string]Filter{`state "open": give pending`: {State: "open"}, "limit 1001": {Limit: 1001}, "before is -1": {Before: -1}} {
		if _, err := s.store.List(t.Context(), f); !errors.Is(err, lockrepo.ErrInput) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestListsSayWhatARequestIsNow(t *testing.T) {
	t.Parallel()
	s := open(t)
	var last Request
	for range 3 {
		last = s.asked(t, ann)
	}
	if _, _, err := s.store.Decide(t.Context(), 1, bob, false, "once is enough"); err != nil {
		t.Fatal(err)
	}
	states := func(f Filter) (got string) {
		t.Helper()
		all, err := s.store.List(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range all {
			got += fmt.Sprintf("%d %s;", q.ID, q.State)
		}
		return got
	}
	if got := states(Filter{}); got != "3 pending;2 pending;1 declined;" {
		t.Error(got)
	}
	if got := states(Filter{Limit: 1}) + states(Filter{Before: 3, Limit: 1}); got != "3 pending;2 pending;" {
		t.Error(got)
	}
	if _, _, err := s.store.Decide(t.Context(), last.ID, bob, true, ""); err != nil {
		t.Fatal(err)
	}
	if got := states(Filter{State: Stale}) + states(Filter{State: Pending}) + states(Filter{State: Approved}); got != "2 stale;3 approved;" {
		t.Errorf("once the lease is released: %s", got)
	}
	s.late(t)
	if got := states(Filter{State: Expired}) + states(Filter{State: Declined}); got != "2 expired;1 declined;" {
		t.Errorf("once its time is over: %s", got)
	}
	var err error
	if s.lease, err = s.repo.Acquire(t.Context(), "x", 0); err != nil {
		t.Fatal(err)
	}
	s.asked(t, ann)
	if got := s.run(t, `select state from pawl.approvals where id = 2`); got != Expired {
		t.Errorf("the row is %s after the next request, want expired", got)
	}
	if _, err := s.store.Get(t.Context(), 99); !errors.Is(err, ErrNotFound) {
		t.Errorf("%v, want ErrNotFound", err)
	}
}

// Ten thousand rows: a list reads its page of them.
func TestListsReadNoMoreThanTheirPage(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.exec(t, `alter table pawl.approvals disable trigger kept`)
	s.exec(t, `insert into pawl.approvals (action, lock, token, reason, requested_by_id, requested_by, requested_at, expires_at, state, decided_by_id, decided_at, note)
	  select 'force_release', 'l' || i % 100, i, repeat('x', 20), 'a', 'a', now() - interval '1 day', now() - interval '1 day' + interval '15 min', 'declined', 'b', now(), 'no'
	    from generate_series(1, 20000) i`)
	s.exec(t, `alter table pawl.approvals enable trigger kept`)
	s.asked(t, ann)
	s.exec(t, `analyze pawl.approvals`)
	for name, q := range map[string]struct {
		sql  string
		args []any
	}{
		"all":     {listSQL, []any{int64(15000), 100}},
		"pending": {listOfSQL, []any{int64(0), 100, Pending}},
		"one":     {requestOne, []any{int64(7)}},
	} {
		rows, err := s.pool.Query(t.Context(), "explain "+q.sql, append([]any{exec}, q.args...)...)
		if err != nil {
			t.Fatal(err)
		}
		var plan []string
		for rows.Next() {
			var line string
			if err := rows.Scan(&line); err != nil {
				t.Fatal(err)
			}
			plan = append(plan, line)
		}
		if text := strings.Join(plan, "\n"); rows.Err() != nil || strings.Contains(text, "Seq Scan on approvals") {
			t.Errorf("%s: %v\n%s", name, rows.Err(), text)
		}
	}
}
