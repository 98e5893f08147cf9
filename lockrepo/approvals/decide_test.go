package approvals

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"pawl/fence"
	"pawl/internal/pgtest"
	"pawl/lockrepo"
	"pawl/lockrepo/keys"
)

func TestASecondPersonsApprovalReleasesTheLease(t *testing.T) {
	t.Parallel()
	s := open(t)
	q := s.asked(t, ann)
	if q.Action != ForceRelease || q.Lock != "x" || q.Token != s.lease.Token.Seq || q.Reason != why || q.RequestedBy != "ann" ||
		q.Holder != "worker-1" || q.ExpiresAt.Sub(q.RequestedAt) != 15*time.Minute || q.DecidedAt != nil || q.Self {
		t.Errorf("request %+v", q)
	}
	s.held(t)
	q, tenure, err := s.store.Decide(t.Context(), q.ID, bob, true, " seen ")
	if err != nil || q.State != Approved || q.DecidedByID != bob.ID || q.DecidedBy != "bob" || q.DecidedAt == nil || q.Note != "seen" || q.Self || q.Holder != "" {
		t.Errorf("%+v, %v", q, err)
	}
	if tenure.How != "forced" || tenure.Holder != "worker-1" || tenure.Token != s.lease.Token.Seq || !tenure.EndedAt.Equal(*q.DecidedAt) || tenure.AcquiredAt == nil {
		t.Errorf("tenure %+v", tenure)
	}
	if _, err := s.repo.Renew(t.Context(), s.lease); !errors.Is(err, lockrepo.ErrForced) {
		t.Errorf("renewal: %v, want ErrForced", err)
	}
	const audit = `select string_agg(concat_ws('|', actor, action, lock, token = $1, reason, approver, detail ->> 'holder', detail ->> 'single_operator', detail ->> 'approval' = '1'), e'\n' order by id) from pawl.audit`
	want := "ann|release_request|x|t|" + why + "|worker-1|t\nann|force_release|x|t|" + why + "|bob|worker-1|false|t"
	if got := s.run(t, audit, s.lease.Token.Seq); got != want {
		t.Errorf("audit:\n%s\nwant:\n%s", got, want)
	}
}

// The numbers of the transactions that wrote the rows.
func TestDecisionReleaseTenureAndAuditAreOneTransaction(t *testing.T) {
	t.Parallel()
	s := open(t)
	q := s.asked(t, ann)
	if _, _, err := s.store.Decide(t.Context(), q.ID, bob, true, ""); err != nil {
		t.Fatal(err)
	}
	const sql = `select count(distinct x)::text || '/' || count(*) from (select xmin::text from pawl.locks union all select xmin::text from pawl.tenures
	  union all select xmin::text from pawl.approvals union all select xmin::text from pawl.audit where action = 'force_release') rows (x)`
	if got := s.run(t, sql); got != "1/4" {
		t.Errorf("transactions/rows: %s, want 1/4", got)
	}
}

func TestAReleaseThatCannotBeAuditedDoesNotHappen(t *testing.T) {
	t.Parallel()
	s := open(t)
	q := s.asked(t, ann)
	s.exec(t, `alter table pawl.audit add constraint full_up check (action <> 'force_release')`)
	if _, _, err := s.store.Decide(t.Context(), q.ID, bob, true, ""); err == nil {
		t.Error("released without an audit row")
	}
	s.held(t)
	if q, err := s.store.Get(t.Context(), q.ID); err != nil || q.State != Pending {
		t.Errorf("%+v, %v, want it pending", q, err)
	}
}

func TestWhoAsksCannotApprove(t *testing.T) {
	t.Parallel()
	s := open(t)
	q := s.asked(t, ann)
	again := ann
	again.Name = "somebody else" // it is the id that counts
	if _, _, err := s.store.Decide(t.Context(), q.ID, again, true, ""); !errors.Is(err, ErrSamePerson) {
		t.Errorf("%v, want ErrSamePerson", err)
	}
	s.held(t)
	if got, _, err := s.store.Decide(t.Context(), q.ID, ann, false, "a mistake"); err != nil || got.State != Declined {
		t.Errorf("taking it back: %+v, %v", got, err)
	}
	s.held(t)
}

func TestADeclineNeedsANoteAndReleasesNothing(t *testing.T) {
	t.Parallel()
	s := open(t)
	q := s.asked(t, ann)
	if _, _, err := s.store.Decide(t.Context(), q.ID, bob, false, " \n"); !errors.Is(err, lockrepo.ErrInput) || !strings.Contains(err.Error(), "note is empty") {
		t.Errorf("%v, want it to ask for a note", err)
	}
	q, tenure, err := s.store.Decide(t.Context(), q.ID, bob, false, "it works, see the log")
	if err != nil || q.State != Declined || q.Note != "it works, see the log" || tenure.How != "" {
		t.Errorf("%+v, %+v, %v", q, tenure, err)
	}
	s.held(t)
	if got := s.run(t, `select actor || '|' || reason || '|' || (detail ->> 'requested_by') from pawl.audit where action = 'release_decline'`); got != "bob|it works, see the log|ann" {
		t.Errorf("audit %q", got)
	}
	var decided *DecidedError
	_, _, err = s.store.Decide(t.Context(), q.ID, bob, true, "")
	if !errors.As(err, &decided) || !errors.Is(err, ErrDecided) || decided.State != Declined || decided.By != "bob" || !decided.At.Equal(*q.DecidedAt) {
		t.Errorf("%v, want who has declined it", err)
	}
	s.held(t)
}

func TestAnExpiredRequestReleasesNothing(t *testing.T) {
	t.Parallel()
	s := open(t)
	q := s.asked(t, ann)
	s.late(t)
	for range 2 { // as it is found, and as it is kept from then on
		if got, _, err := s.store.Decide(t.Context(), q.ID, bob, true, ""); !errors.Is(err, ErrExpired) || got.State != Expired {
			t.Errorf("%+v, %v, want ErrExpired", got, err)
		}
	}
	s.held(t)
}

func TestARequestForATokenThatHasGoneIsStaleAndSparesTheSuccessor(t *testing.T) {
	t.Parallel()
	s := open(t)
	q := s.asked(t, ann)
	if err := s.repo.Release(t.Context(), s.lease); err != nil {
		t.Fatal(err)
	}
	heir, err := s.repo.AcquireRequest(t.Context(), lockrepo.Request{Lock: "x", Holder: "worker-2"})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.store.Get(t.Context(), q.ID); err != nil || got.State != Stale || got.Holder != "worker-2" {
		t.Errorf("%+v, %v, want it stale with the heir", got, err)
	}
	for range 2 {
		if got, _, err := s.store.Decide(t.Context(), q.ID, bob, true, ""); !errors.Is(err, lockrepo.ErrNotHeld) || got.State != Stale {
			t.Errorf("%+v, %v, want ErrNotHeld", got, err)
		}
	}
	if _, err := s.repo.Renew(t.Context(), heir); err != nil {
		t.Errorf("the successor's renewal: %v", err)
	}
}

func TestOfTwoApproversOneReleases(t *testing.T) {
	t.Parallel()
	s := open(t)
	const n = 6
	q := s.asked(t, ann)
	var all sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		all.Go(func() {
			_, _, errs[i] = s.store.Decide(t.Context(), q.ID, Person{ID: "approver " + string(rune('a'+i)), Approver: true}, i%3 != 2, "seen")
		})
	}
	all.Wait()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
		} else if !errors.Is(err, ErrDecided) {
			t.Errorf("%v, want ErrDecided", err)
		}
	}
	if got := s.run(t, `select count(*)::text from pawl.audit where action <> 'release_request'`); won != 1 || got != "1" {
		t.Errorf("%d have decided, with %s rows in the audit, want 1", won, got)
	}
}

// The first has not committed yet: the second must wait for it, and not release twice.
func TestASecondApproverWaitsForTheFirst(t *testing.T) {
	t.Parallel()
	s := open(t)
	q := s.asked(t, ann)
	tx, err := s.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var outcome string
	if err := tx.QueryRow(t.Context(), `select pawl.decide_release($1, 'eve', 'eve', true, true)`, q.ID).Scan(&outcome); err != nil || outcome != Approved {
		t.Fatal(outcome, err)
	}
	second := make(chan error, 1)
	go func() { _, _, err := s.store.Decide(t.Context(), q.ID, bob, true, ""); second <- err }()
	pgtest.Eventually(t, 10*time.Second, "the second waits", func() bool {
		return s.run(t, `select exists (select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database())::text`) == "true"
	})
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	var decided *DecidedError
	if err := <-second; !errors.As(err, &decided) || decided.By != "eve" {
		t.Errorf("%v, want that eve has decided", err)
	}
}

func TestAForcedReleaseDoesNotWaitForAGuard(t *testing.T) {
	t.Parallel()
	s := open(t)
	tx, err := s.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := fence.Guard(t.Context(), tx, s.lease.Token); err != nil {
		t.Fatal(err)
	}
	q := s.asked(t, ann)
	if _, _, err := s.store.Decide(t.Context(), q.ID, bob, true, ""); err != nil { // it would wait for ever
		t.Fatal(err)
	}
	if err := fence.Do(t.Context(), s.pool, s.lease.Token, func(pgx.Tx) error { return nil }); !errors.Is(err, fence.ErrNotHeld) {
		t.Errorf("new guard: %v, want ErrNotHeld", err)
	}
	if _, err := s.repo.Acquire(t.Context(), "x", 0); !errors.Is(err, lockrepo.ErrHeld) {
		t.Errorf("acquire while the transaction drains: %v, want ErrHeld", err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Errorf("the open transaction: %v, want it committed", err)
	}
	if _, err := s.repo.Acquire(t.Context(), "x", 0); err != nil {
		t.Error(err)
	}
}

func TestKillEndsTheOpenGuardedTransaction(t *testing.T) {
	t.Parallel()
	s := open(t)
	tx, err := s.pool.BeginTx(t.Context(), fence.BeginOptions(s.lease.Token, time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	r := s.release(ann)
	r.Kill = true
	q, err := s.store.RequestRelease(t.Context(), r)
	if err != nil || !q.Kill {
		t.Fatalf("%+v, %v", q, err)
	}
	if err := fence.Do(t.Context(), s.pool, s.lease.Token, func(pgx.Tx) error { return nil }); err != nil {
		t.Errorf("a request alone stops the holder: %v", err)
	}
	if _, tenure, err := s.store.Decide(t.Context(), q.ID, bob, true, ""); err != nil || tenure.Killed != 1 {
		t.Errorf("%d backends terminated, %v, want 1", tenure.Killed, err)
	}
	if err := tx.Commit(t.Context()); err == nil {
		t.Error("the killed transaction committed")
	}
	pgtest.Eventually(t, 5*time.Second, "the lock is free", func() bool {
		_, err := s.repo.Acquire(t.Context(), "x", time.Minute)
		return err == nil
	})
}

func TestWhoMayNotApproveIsRefused(t *testing.T) {
	t.Parallel()
	s := open(t)
	q := s.asked(t, ann)
	reader := s.key(t, keys.Key{Name: "reader", Role: keys.Reader})
	lying := reader
	lying.Approver = true // what the caller says of a key doesn't count
	elsewhere := s.key(t, keys.Key{Name: "elsewhere", Role: keys.Operator, Approver: true, Prefix: "y/"})
	revoked := s.key(t, keys.Key{Name: "revoked", Role: keys.Operator, Approver: true})
	if _, err := keys.New(s.pool).Revoke(t.Context(), revoked.ID, "ops"); err != nil {
		t.Fatal(err)
	}
	for _, by := range []Person{guest, reader, lying, elsewhere, revoked, {ID: Anonymous}} {
		for _, yes := range []bool{true, false} {
			if _, _, err := s.store.Decide(t.Context(), q.ID, by, yes, "a note"); !errors.Is(err, ErrNotApprover) {
				t.Errorf("%s, %t: %v, want ErrNotApprover", by.Name, yes, err)
			}
		}
	}
	s.held(t)
	approver := s.key(t, keys.Key{Name: "approver", Role: keys.Reader, Approver: true, Prefix: "x"})
	if got, _, err := s.store.Decide(t.Context(), q.ID, approver, true, ""); err != nil || got.DecidedByID != approver.ID {
		t.Errorf("%+v, %v", got, err)
	}
	if _, _, err := s.store.Decide(t.Context(), 99, bob, true, ""); !errors.Is(err, ErrNotFound) {
		t.Errorf("%v, want ErrNotFound", err)
	}
}

func TestItWorksBehindATransactionPooler(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.store = New(pgtest.Open(t, pgtest.Pooler(t, s.pool.Config().ConnString())), nil)
	for range 3 {
		q := s.asked(t, ann)
		if _, err := s.store.List(t.Context(), Filter{State: Pending}); err != nil {
			t.Error(err)
		}
		if _, _, err := s.store.Decide(t.Context(), q.ID, bob, true, ""); err != nil {
			t.Error(err)
		}
		var err error
		if s.lease, err = s.repo.Acquire(t.Context(), "x", time.Minute); err != nil {
			t.Fatal(err)
		}
	}
}
