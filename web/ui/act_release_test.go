package ui_test

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"pawl/fence"
	"pawl/lockrepo"
	"pawl/web"
)

const why = "worker hangs, pager 4471"

// held takes the lock ledger, as its holder.
func (s *staffed) held(t *testing.T, holder string) *lockrepo.Lease {
	t.Helper()
	repo, err := lockrepo.New(lockrepo.Config{Pool: s.pool})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(repo.Close)
	lease, err := repo.AcquireRequest(t.Context(), lockrepo.Request{Lock: "ledger", Holder: holder})
	if err != nil {
		t.Fatal(err)
	}
	return &lease
}

// write is what a holder does under its token.
func (s *staffed) write(t *testing.T, token fence.Token) error {
	t.Helper()
	return fence.Do(t.Context(), s.pool, token, func(pgx.Tx) error { return nil })
}

func TestTwoPeopleReleaseALockAndTheOldHoldersWriteIsRefused(t *testing.T) {
	t.Parallel()
	s := staff(t, "select", nil)
	lease := s.held(t, "worker-1")
	page := s.get(t, "ann", "/ui/locks/ledger/release")
	page.is(t, http.StatusOK)
	page.has(t, "What happens", "You cannot approve your own request", "worker-1 is not killed", `name="kill"`, "Request release of ledger")

	asked := s.post(t, "ann", "/ui/locks/ledger/release", s.form(t, "ann", "/ui/locks/ledger/release", "reason", why))
	asked.goes(t, "/ui/approvals/1")
	if err := s.write(t, lease.Token); err != nil {
		t.Fatalf("a request alone stops the holder: %v", err)
	}
	s.get(t, "eve", "/ui/approvals").has(t, "Release ledger", why, "ann", "waiting")
	s.get(t, "eve", "/ui/locks/ledger").has(t, "<b>ann</b> asks to release", why)
	s.get(t, "ann", "/ui/locks/ledger/release").has(t, "Asked for already", `<a href="/ui/approvals/1">request 1 of ann</a>`)
	own := s.get(t, "ann", "/ui/approvals/1")
	own.has(t, "You cannot approve your own request", "Take back the request to release ledger", why)
	own.lacks(t, `value="approve"`)
	s.post(t, "ann", "/ui/approvals/1", url.Values{"decision": {"approve"}}).is(t, http.StatusForbidden)
	s.post(t, "ann", "/ui/approvals/1", url.Values{"decision": {"decline"}, "note": {"no"}}).goes(t, "/ui/approvals/1") // who asks may take it back
	s.post(t, "ann", "/ui/locks/ledger/release", s.form(t, "ann", "/ui/locks/ledger/release", "reason", why)).goes(t, "/ui/approvals/2")

	other := s.get(t, "bob", "/ui/approvals/2")
	other.has(t, "What approving does", "worker-1 is not killed", "Lease ends, unless renewed", "Approve the release of ledger", "Decline the release of ledger", why, "worker-1")
	other.lacks(t, "Take back")
	s.post(t, "bob", "/ui/approvals/2", url.Values{"decision": {"decline"}}).is(t, http.StatusUnprocessableEntity)
	s.post(t, "bob", "/ui/approvals/2", url.Values{"decision": {"approve"}, "note": {"seen"}}).goes(t, "/ui/approvals/2")
	if err := s.write(t, lease.Token); !errors.Is(err, fence.ErrNotHeld) {
		t.Errorf("the old holder's write = %v, want ErrNotHeld", err)
	}
	next := s.held(t, "worker-2")
	if err := s.write(t, lease.Token); !errors.Is(err, fence.ErrStale) {
		t.Errorf("the old holder's write = %v, want ErrStale", err)
	}
	if err := s.write(t, next.Token); err != nil {
		t.Errorf("the next holder's write = %v", err)
	}
	s.get(t, "eve", "/ui/approvals/2").has(t, "Approved by", "bob", "seen", "next write is refused")
	s.get(t, "eve", "/ui/audit?lock=ledger").has(t, "force release", "approved by bob", why)
	if got := one(t, s.pool, `select string_agg(action || ' ' || actor || ' ' || coalesce(approver, '-'), ', ' order by id) from pawl.audit where lock = 'ledger'`); got !=
		"release_request ann -, release_decline ann -, release_request ann -, force_release ann bob" {
		t.Errorf("audit: %s", got)
	}
	s.post(t, "cas", "/ui/approvals/2", url.Values{"decision": {"approve"}}).is(t, http.StatusConflict)
}

// Who has come to a wrong address is not sent away without the way back.
func TestAWrongAddressKeepsTheBar(t *testing.T) {
	t.Parallel()
	s := staff(t, "select", nil)
	got := s.get(t, "ann", "/ui/nowhere")
	got.is(t, http.StatusNotFound)
	got.has(t, "ann, operator", `href="/ui/locks"`, "No page is at this address.")
	s.get(t, "nobody", "/ui/nowhere").lacks(t, `href="/ui/locks"`)
}

func TestAReleaseNeedsAReasonAndKeepsWhatWasWritten(t *testing.T) {
	t.Parallel()
	s := staff(t, "select", nil)
	s.held(t, "worker-1")
	got := s.post(t, "ann", "/ui/locks/ledger/release", s.form(t, "ann", "/ui/locks/ledger/release", "reason", "stuck <b>", "kill", "yes"))
	got.is(t, http.StatusUnprocessableEntity)
	got.has(t, `role="alert"`, `aria-invalid="true"`, "stuck &lt;b&gt;</textarea>", "at least 10", `value="yes" checked`)
	if n := one(t, s.pool, `select count(*)::text from pawl.approvals`); n != "0" {
		t.Errorf("%s requests were made", n)
	}
}

func TestAReleaseThatWasMadeForAnotherHolderIsRefused(t *testing.T) {
	t.Parallel()
	s := staff(t, "select", nil)
	s.held(t, "worker-1")
	form := s.form(t, "ann", "/ui/locks/ledger/release", "reason", why)
	if _, err := s.pool.Exec(t.Context(), `update pawl.locks set expires_at = now() - interval '1 s' where name = 'ledger'`); err != nil {
		t.Fatal(err)
	}
	next := s.held(t, "worker-2")
	got := s.post(t, "ann", "/ui/locks/ledger/release", form)
	got.is(t, http.StatusConflict)
	got.has(t, "The holder has changed", "Nothing was released")
	if err := s.write(t, next.Token); err != nil {
		t.Errorf("the next holder's write = %v", err)
	}
	form.Del("token")
	s.post(t, "ann", "/ui/locks/ledger/release", form).is(t, http.StatusBadRequest)

	// A request that was made before is stale too, whoever approves it.
	s.post(t, "ann", "/ui/locks/ledger/release", s.form(t, "ann", "/ui/locks/ledger/release", "reason", why)).goes(t, "/ui/approvals/1")
	if _, err := s.pool.Exec(t.Context(), `update pawl.locks set expires_at = now() - interval '1 s' where name = 'ledger'`); err != nil {
		t.Fatal(err)
	}
	s.get(t, "bob", "/ui/approvals/1").has(t, "Lease ended", "only tidies up")
	last := s.held(t, "worker-3")
	s.get(t, "bob", "/ui/approvals/1").lacks(t, "What approving does", "Approve the release")
	s.post(t, "bob", "/ui/approvals/1", url.Values{"decision": {"approve"}}).is(t, http.StatusConflict)
	if err := s.write(t, last.Token); err != nil {
		t.Errorf("the last holder's write = %v", err)
	}
	s.get(t, "eve", "/ui/approvals/1").has(t, "stale", "Nothing was released")
}

func TestOfTwoWhoApproveAtOnceOneIsToldWhoWasFaster(t *testing.T) {
	t.Parallel()
	s := staff(t, "select", nil)
	s.held(t, "worker-1")
	s.post(t, "ann", "/ui/locks/ledger/release", s.form(t, "ann", "/ui/locks/ledger/release", "reason", why)).goes(t, "/ui/approvals/1")
	answers := make([]reply, 2)
	var all sync.WaitGroup
	for i, who := range []string{"bob", "cas"} {
		all.Go(func() { answers[i] = s.post(t, who, "/ui/approvals/1", url.Values{"decision": {"approve"}}) })
	}
	all.Wait()
	if answers[0].status > answers[1].status {
		answers[0], answers[1] = answers[1], answers[0]
	}
	answers[0].is(t, http.StatusSeeOther)
	answers[1].is(t, http.StatusConflict)
	answers[1].has(t, "Somebody was faster")
	if n := one(t, s.pool, `select count(*)::text from pawl.audit where action = 'force_release'`); n != "1" {
		t.Errorf("%s releases", n)
	}
}

func TestASingleOperatorApprovesAloneAndThePageSaysSo(t *testing.T) {
	t.Parallel()
	s := staff(t, `insert into pawl.settings (name, value, changed_by) values ('single_operator', 'true', 'test')`, nil)
	s.held(t, "worker-1")
	s.get(t, "bob", "/ui/locks/ledger/release").has(t, "Single operator is set")
	s.get(t, "ann", "/ui/locks/ledger/release").has(t, "Another person") // she may not approve
	s.post(t, "bob", "/ui/locks/ledger/release", s.form(t, "bob", "/ui/locks/ledger/release", "reason", why)).goes(t, "/ui/approvals/1")
	s.get(t, "eve", "/ui/approvals/1").has(t, "approved", "the same person: single operator")
	s.get(t, "eve", "/ui/approvals?state=all").has(t, "single operator")
}

func TestRequestsArePagedAndThoseThatWaitComeFirst(t *testing.T) {
	t.Parallel()
	s := staff(t, `
insert into pawl.locks (name, token, incarnation, grant_id, holder, ttl, acquired_at, renewed_at, expires_at) values ('x', 7, 1, gen_random_uuid(), 'w', '1 h', now(), now(), now() + interval '1 h');
insert into pawl.approvals (action, lock, token, reason, requested_by_id, requested_by, requested_at, expires_at)
select 'force_release', 'x', case when n > 240 then 7 else 5 end, 'reason number ' || lpad(n::text, 4, '0'), 'a', 'ann', now() - interval '1 min', now() + interval '14 min' from generate_series(1, 250) n`, nil)
	waiting := s.get(t, "eve", "/ui/approvals")
	waiting.has(t, "reason number 0250", "reason number 0241")
	waiting.lacks(t, "reason number 0240", "There are more")
	all := s.get(t, "eve", "/ui/approvals?state=all")
	all.has(t, "reason number 0250", "reason number 0151", "There are more", "before=151")
	all.lacks(t, "reason number 0150")
	s.get(t, "eve", "/ui/approvals?state=all&before=151").has(t, "reason number 0150", "reason number 0051")
	s.get(t, "eve", "/ui/approvals?before=x").is(t, http.StatusUnprocessableEntity)
	s.get(t, "eve", "/ui/approvals/9999").is(t, http.StatusNotFound)
	if got := s.get(t, "eve", "/ui/approvals/1"); strings.Contains(got.body, "<textarea") {
		t.Error("a reader sees a form")
	}
}

func TestReadOnlyRefusesEvenAnApprover(t *testing.T) {
	t.Parallel()
	s := staff(t, "select", func(c *web.Config) { c.ReadOnly = true })
	s.held(t, "worker-1")
	got := s.get(t, "bob", "/ui/locks/ledger/release")
	got.is(t, http.StatusForbidden)
	got.has(t, "read only")
}

func TestWithoutRequestsThereIsNoPageOfThem(t *testing.T) {
	t.Parallel()
	srv, _ := open(t, story, func(c *web.Config) { c.Approvals = nil })
	for _, path := range []string{"/ui/approvals", "/ui/approvals/1"} {
		send(t, http.MethodGet, srv.URL+path).is(t, http.StatusNotFound)
	}
	got := send(t, http.MethodDelete, srv.URL+"/ui/approvals/1")
	got.is(t, http.StatusMethodNotAllowed)
	if allow := got.header.Get("Allow"); allow != "GET, HEAD, POST" {
		t.Errorf("Allow: %s", allow)
	}
}
