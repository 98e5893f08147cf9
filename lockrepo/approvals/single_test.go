package approvals

import (
	"errors"
	"testing"

	"pawl/lockrepo/keys"
)

func (s *scene) single(t *testing.T, on bool) {
	t.Helper()
	if err := s.store.SetSingleOperator(t.Context(), on, ann); err != nil {
		t.Fatal(err)
	}
	if got, err := s.store.SingleOperator(t.Context()); err != nil || got != on {
		t.Fatalf("%t, %v, want %t", got, err, on)
	}
}

func TestASingleOperatorReleasesAtOnceAndTheAuditSaysSo(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.single(t, true)
	q, err := s.store.RequestRelease(t.Context(), s.release(ann))
	if err != nil || q.State != Approved || !q.Self || q.DecidedByID != ann.ID {
		t.Errorf("%+v, %v, want it approved by herself", q, err)
	}
	const audit = `select string_agg(concat_ws('|', actor, action, approver, detail ->> 'on', detail ->> 'single_operator'), e'\n' order by id) from pawl.audit`
	if got, want := s.run(t, audit), "ann|single_operator|true\nann|release_request\nann|force_release|ann|true"; got != want {
		t.Errorf("audit:\n%s\nwant:\n%s", got, want)
	}
	if got := s.run(t, `select count(distinct x)::text from (select xmin::text from pawl.locks union all select xmin::text from pawl.approvals
	  union all select xmin::text from pawl.audit where action <> 'single_operator') r (x)`); got != "1" {
		t.Errorf("%s transactions, want 1", got)
	}
}

func TestASingleOperatorWhoMayNotApproveStillNeedsOneWhoMay(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.single(t, true)
	q := s.asked(t, guest)
	if q, _, err := s.store.Decide(t.Context(), q.ID, ann, true, ""); err != nil || q.Self {
		t.Errorf("%+v, %v, want it approved by another", q, err)
	}
}

func TestARequestOfBeforeIsApprovedByItsOwnOnceASingleOperatorIsSet(t *testing.T) {
	t.Parallel()
	s := open(t)
	q := s.asked(t, ann)
	s.single(t, true)
	s.single(t, false)
	if _, _, err := s.store.Decide(t.Context(), q.ID, ann, true, ""); !errors.Is(err, ErrSamePerson) {
		t.Errorf("%v, want ErrSamePerson once it is off again", err)
	}
	s.single(t, true)
	if q, _, err := s.store.Decide(t.Context(), q.ID, ann, true, ""); err != nil || !q.Self {
		t.Errorf("%+v, %v", q, err)
	}
}

func TestOnlyWhoMayApproveEverythingSetsASingleOperator(t *testing.T) {
	t.Parallel()
	s := open(t)
	operator := s.key(t, keys.Key{Name: "operator", Role: keys.Operator})
	some := s.key(t, keys.Key{Name: "some", Role: keys.Operator, Approver: true, Prefix: "x"})
	for _, by := range []Person{guest, operator, some, {ID: Anonymous}} {
		if err := s.store.SetSingleOperator(t.Context(), true, by); !errors.Is(err, ErrNotApprover) {
			t.Errorf("%s: %v, want ErrNotApprover", by.ID, err)
		}
	}
	if on, err := s.store.SingleOperator(t.Context()); on || err != nil {
		t.Errorf("%t, %v", on, err)
	}
	if got := s.run(t, `select count(*)::text from pawl.audit where action = 'single_operator'`); got != "0" {
		t.Errorf("%s rows in the audit", got)
	}
}

// Where nobody has to give a key, whoever comes may everything; the first key ends that.
func TestAnonymousMayApproveUntilTheFirstKeyIsMade(t *testing.T) {
	t.Parallel()
	s := open(t)
	anonymous := Person{ID: Anonymous}
	if err := s.store.SetSingleOperator(t.Context(), true, anonymous); err != nil {
		t.Fatal(err)
	}
	s.key(t, keys.Key{Name: "first", Role: keys.Reader})
	q := s.asked(t, anonymous)
	if _, _, err := s.store.Decide(t.Context(), q.ID, anonymous, true, ""); !errors.Is(err, ErrNotApprover) {
		t.Errorf("%v, want ErrNotApprover", err)
	}
}
