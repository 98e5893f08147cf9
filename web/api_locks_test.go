package web_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pawl/fence"
	"pawl/internal/faults"
	lockkeys "pawl/lockrepo/keys"
	"pawl/web"
)

var microseconds = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$`)

func TestAGrantSaysWhatItIs(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	got := a.ask(t, http.MethodPost, "/locks/a%2Fb", `{"owner":" alice ","ttl_seconds":60}`)
	got.is(t, http.StatusOK, "")
	l := got.doc(t).Lock
	if l.Resource != "a/b" || l.Owner != "alice" || l.TTL != 60 || l.RenewedAt != l.AcquiredAt || l.FencingToken < 1 || l.FencingToken >= 1<<53 {
		t.Errorf("lock = %+v", l)
	}
	for _, at := range []string{l.AcquiredAt, l.RenewedAt, l.ExpiresAt} {
		if !microseconds.MatchString(at) {
			t.Errorf("time = %q, want RFC 3339 in UTC with microseconds", at)
		}
	}
	token := strconv.FormatInt(l.FencingToken, 10)
	if got.header.Get("Fencing-Token") != token || got.header.Get("Cache-Control") != "no-store" {
		t.Errorf("header = %v", got.header)
	}
	got.has(t, `{"acquired":true,"lock":{"resource":"a/b",`, `"ttl_seconds":60,`)
	look := a.ask(t, http.MethodGet, "/locks/a%2Fb", "")
	if look.header.Get("ETag") != `"`+token+`"` {
		t.Errorf("ETag = %q, want %q", look.header.Get("ETag"), token)
	}
	head := a.ask(t, http.MethodHead, "/locks/a%2Fb", "")
	if head.status != http.StatusOK || head.body != "" || head.header.Get("ETag") != `"`+token+`"` || head.header.Get("Content-Type") != "application/json" {
		t.Errorf("HEAD = %d %v", head.status, head.header)
	}
}

func TestARenewalMovesTheEndAndNothingElse(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	before := a.ask(t, http.MethodPost, "/locks/x", alice).doc(t).Lock
	got := a.ask(t, http.MethodPost, "/locks/x/renew", `{"owner":"alice","ttl_seconds":600}`)
	got.is(t, http.StatusOK, "")
	after := got.doc(t).Lock
	if after.FencingToken != before.FencingToken || after.AcquiredAt != before.AcquiredAt || after.ExpiresAt <= before.ExpiresAt ||
		after.RenewedAt <= before.RenewedAt || after.TTL != 600 || got.header.Get("Fencing-Token") != strconv.FormatInt(before.FencingToken, 10) {
		t.Errorf("after %+v the renewal answers %+v", before, after)
	}
	if look := a.ask(t, http.MethodGet, "/locks/x", "").doc(t).Lock; look != after {
		t.Errorf("lock = %+v, want %+v", look, after)
	}
}

func TestIfMatchInsistsOnAToken(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	token := a.take(t, "x", alice)
	for _, tag := range []string{`"1"`, fmt.Sprintf(`"%d"`, token+1), fmt.Sprintf(`W/"%d"`, token), `"abc"`, `""`, fmt.Sprintf(`"0%d"`, token)} {
		a.ask(t, http.MethodPost, "/locks/x/renew", alice, "If-Match", tag).is(t, http.StatusPreconditionFailed, "precondition-failed")
		a.ask(t, http.MethodDelete, "/locks/x", `{"owner":"alice"}`, "If-Match", tag).is(t, http.StatusPreconditionFailed, "precondition-failed")
	}
	for _, tag := range []string{"", "1", `"1", "2"`, `"1`} {
		a.ask(t, http.MethodDelete, "/locks/x", `{"owner":"alice"}`, "If-Match", tag).is(t, http.StatusBadRequest, "malformed")
	}
	a.ask(t, http.MethodDelete, "/locks/x", `{"owner":"alice"}`, "If-Match", `"1"`, "If-Match", `"1"`).is(t, http.StatusBadRequest, "malformed")
	a.ask(t, http.MethodPost, "/locks/x/renew", alice, "If-Match", "*").is(t, http.StatusOK, "")
	a.ask(t, http.MethodPost, "/locks/x/renew", alice, "If-Match", fmt.Sprintf(`"%d"`, token)).is(t, http.StatusOK, "")
	a.ask(t, http.MethodDelete, "/locks/x", `{"owner":"alice"}`, "If-Match", fmt.Sprintf(`"%d"`, token)).is(t, http.StatusNoContent, "")
}

func TestTheSameIdempotencyKeyIsTheSameGrantWhileItLives(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	const brief, other = `{"owner":"alice","ttl_seconds":2}`, `{"owner":"alice","ttl_seconds":3}`
	first := a.take(t, "x", brief, "Idempotency-Key", "k")
	if again := a.take(t, "x", ` {"ttl_seconds":2, "owner":" alice"} `, "Idempotency-Key", "k"); again != first {
		t.Errorf("asked again it grants %d, want %d", again, first)
	}
	a.ask(t, http.MethodPost, "/locks/x", other, "Idempotency-Key", "k").is(t, http.StatusUnprocessableEntity, "idempotency-key-reused")
	if elsewhere := a.take(t, "y", other, "Idempotency-Key", "k"); elsewhere == 0 {
		t.Error("the key reaches another lock")
	}
	a.expired(t)
	if next := a.take(t, "x", brief, "Idempotency-Key", "k"); next <= first {
		t.Errorf("after its end it grants %d, want more than %d", next, first)
	}
	for _, key := range []string{"", strings.Repeat("k", 256), "é", "a\tb"} {
		a.ask(t, http.MethodPost, "/locks/z", alice, "Idempotency-Key", key).is(t, http.StatusBadRequest, "malformed")
	}
}

func TestAnIdempotencyKeyIsItsApiKeysOwn(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	one, two := as(a.key(t, lockkeys.Key{Name: "1", Role: lockkeys.Worker})), as(a.key(t, lockkeys.Key{Name: "2", Role: lockkeys.Worker}))
	first := a.take(t, "x", alice, append(one, "Idempotency-Key", "k")...)
	if other := a.take(t, "x", alice, append(two, "Idempotency-Key", "k")...); other != 0 {
		t.Errorf("another key is answered the grant %d", other)
	}
	if again := a.take(t, "x", alice, append(one, "Idempotency-Key", "k")...); again != first {
		t.Errorf("its own key is answered %d, want %d", again, first)
	}
}

// The reply of a COMMIT is lost: the answer is 503, and the same request finds the grant that was made.
func TestALostReplyIsAskedForAgain(t *testing.T) {
	t.Parallel()
	a, proxy := mute(t)
	got := a.ask(t, http.MethodPost, "/locks/x", alice, "Idempotency-Key", "k")
	got.is(t, http.StatusServiceUnavailable, "unavailable")
	got.has(t, "same Idempotency-Key")
	proxy.Set(faults.Pass, 0)
	var token int64
	eventually(t, "the database answers again", func() bool {
		again := a.ask(t, http.MethodPost, "/locks/x", alice, "Idempotency-Key", "k")
		if again.status == http.StatusOK {
			token = again.doc(t).Lock.FencingToken
		}
		return again.status == http.StatusOK
	})
	if token == 0 || a.take(t, "x", alice, "Idempotency-Key", "k") != token {
		t.Errorf("token %d, want one grant for all", token)
	}
}

func TestALeaseIsNotHeldPastMaxHold(t *testing.T) {
	t.Parallel()
	a := newAPI(t, func(c *web.Config) { c.MaxHold = time.Second })
	for _, path := range []string{"/locks/x", "/locks/x/renew", "/locks/x"} { // the last one again, with the same key
		got := a.ask(t, http.MethodPost, path, alice, "Idempotency-Key", "1")
		got.is(t, http.StatusOK, "")
		l := got.doc(t).Lock
		acquired, _ := time.Parse(time.RFC3339, l.AcquiredAt)
		renewed, _ := time.Parse(time.RFC3339, l.RenewedAt)
		expires, _ := time.Parse(time.RFC3339, l.ExpiresAt)
		if given := expires.Sub(renewed); acquired.IsZero() || expires.Sub(acquired) > time.Second || given.Seconds()-l.TTL > 1e-6 || l.TTL-given.Seconds() > 1e-6 {
			t.Errorf("%s: %s; want an end a second after it was acquired, and the TTL that there is until then", path, got.body)
		}
	}
	eventually(t, "the renewal is refused", func() bool { return a.ask(t, http.MethodPost, "/locks/x/renew", alice).status != http.StatusOK })
	a.ask(t, http.MethodPost, "/locks/x/renew", alice).is(t, http.StatusConflict, "lease-lost")
}

func TestARefusalSaysWhenToAskAgain(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	for ttl, within := range map[int][2]int{2: {1, 2}, 20: {18, 20}, 3600: {30, 30}} {
		lock := fmt.Sprint("l", ttl)
		a.take(t, lock, fmt.Sprintf(`{"owner":"a","ttl_seconds":%d}`, ttl))
		got := a.ask(t, http.MethodPost, "/locks/"+lock, bob)
		wait, err := strconv.Atoi(got.header.Get("Retry-After"))
		if err != nil || wait < within[0] || wait > within[1] {
			t.Errorf("%d s: Retry-After = %q, want one of %v", ttl, got.header.Get("Retry-After"), within)
		}
		if d := got.doc(t); d.Expires == nil || !microseconds.MatchString(*d.Expires) {
			t.Errorf("answer = %s", got.body)
		}
	}
}

// A transaction of the last holder still has the row: there is no end to name.
func TestARefusalMayNotKnowTheEnd(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	a.take(t, "x", brief)
	tx, err := a.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context())
	if _, err := tx.Exec(t.Context(), "select from pawl.locks where name = 'x' for key share"); err != nil {
		t.Fatal(err)
	}
	a.expired(t)
	got := a.ask(t, http.MethodPost, "/locks/x", bob)
	got.is(t, http.StatusOK, "")
	got.has(t, `"acquired":false`)
	if wait := got.header.Get("Retry-After"); wait != "1" {
		t.Errorf("Retry-After = %q, want 1", wait)
	}
}

func TestEveryAcquisitionIsLoggedAndKept(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	bearer := as(a.key(t, lockkeys.Key{Name: "nightly", Role: lockkeys.Worker}))
	got := a.ask(t, http.MethodPost, "/locks/x", alice, append(bearer, "X-Request-Id", "req-1.A_b")...)
	got.is(t, http.StatusOK, "")
	if id := got.header.Get("X-Request-Id"); id != "req-1.A_b" {
		t.Errorf("X-Request-Id = %q", id)
	}
	l := got.doc(t).Lock
	a.log.has(t, fmt.Sprintf(`level=INFO msg="lock acquired" lock=x token=%d holder=alice grant_id=`, l.FencingToken),
		"acquired_at="+l.AcquiredAt+" expires_at="+l.ExpiresAt+" key=nightly request_id=req-1.A_b")
	var key, request string
	const held = `select l.key, l.request_id from pawl.locks l where name = 'x'`
	if err := a.pool.QueryRow(t.Context(), held).Scan(&key, &request); err != nil || !strings.HasPrefix(bearer[1], "Bearer pawl_"+key+"_") || request != "req-1.A_b" {
		t.Errorf("kept = %q %q, %v", key, request, err)
	}
	a.ask(t, http.MethodDelete, "/locks/x", `{"owner":"alice"}`, bearer...).is(t, http.StatusNoContent, "")
	const ended = `select key, request_id from pawl.tenures where lock = 'x' and expires_at is not null`
	if err := a.pool.QueryRow(t.Context(), ended).Scan(&key, &request); err != nil || request != "req-1.A_b" {
		t.Errorf("tenure = %q %q, %v", key, request, err)
	}
	a.ask(t, http.MethodGet, "/locks/x/history", "", bearer...).has(t, `"successor":null`, `"key_name":"nightly"`, `"request_id":"req-1.A_b"`)
}

func TestHistoryNamesTheSuccessorAndWhoWasNotOverTheAPI(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	if _, err := a.repo.Acquire(t.Context(), "x", time.Minute); err != nil {
		t.Fatal(err)
	}
	if _, err := a.pool.Exec(t.Context(), `update pawl.locks set expires_at = clock_timestamp()`); err != nil {
		t.Fatal(err)
	}
	next := a.take(t, "x", alice)
	again := a.take(t, "x", alice)
	a.ask(t, http.MethodGet, "/locks/x/history?limit=1", "").has(t,
		fmt.Sprintf(`"how":"reacquired","successor":%d,"refusals":0,"key_name":"anonymous","request_id":"`, again))
	a.ask(t, http.MethodGet, fmt.Sprintf("/locks/x/history?cursor=%d", next), "").has(t,
		fmt.Sprintf(`"how":"taken_over","successor":%d,"refusals":0,"key_name":null,"request_id":null`, next))
}

func TestARequestIdIsTakenOverOnlyWhenItIsSane(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	for sent, kept := range map[string]bool{
		"a": true, "A-b.c_9": true, strings.Repeat("x", 64): true,
		"": false, strings.Repeat("x", 65): false, "a b": false, "a\"b": false, "é": false, "a,b": false, "<a>": false,
	} {
		for _, path := range []string{"/locks", "/healthz", "/nothing", "/locks/x"} {
			got := a.ask(t, http.MethodGet, path, "", "X-Request-Id", sent).header.Values("X-Request-Id")
			if len(got) != 1 || (got[0] == sent) != kept || len(got[0]) < 1 || len(got[0]) > 64 {
				t.Errorf("%q at %s is answered %q, want it kept: %t", sent, path, got, kept)
			}
		}
	}
	a.ask(t, http.MethodGet, "/locks", "", "X-Request-Id", "a", "X-Request-Id", "b").is(t, http.StatusBadRequest, "malformed")
}

// lockList is a page of GET /locks.
type lockList struct {
	Locks []struct {
		Resource, State string
		Owner           string
		FencingToken    int64   `json:"fencing_token"`
		ExpiresAt       *string `json:"expires_at"`
	}
	Next *string `json:"next_cursor"`
}

func (a *lockAPI) list(t *testing.T, path string, header ...string) (l lockList) {
	t.Helper()
	got := a.ask(t, http.MethodGet, path, "", header...)
	got.is(t, http.StatusOK, "")
	decode(t, got.body, &l)
	return l
}

func TestAListIsReadInPages(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	want := []string{"a", "a/b", "b", "ä", "日"}
	for _, name := range []string{"b", "%C3%A4", "a", "%E6%97%A5", "a%2Fb"} {
		a.take(t, name, alice)
	}
	a.ask(t, http.MethodDelete, "/locks/b", `{"owner":"alice"}`).is(t, http.StatusNoContent, "")
	for limit := 1; limit <= 6; limit++ {
		var names []string
		path := fmt.Sprintf("/locks?limit=%d", limit)
		for next := path; ; {
			page := a.list(t, next)
			for _, l := range page.Locks {
				names = append(names, l.Resource)
			}
			if page.Next == nil {
				break
			}
			if len(page.Locks) != limit {
				t.Fatalf("a page of %d has %d", limit, len(page.Locks))
			}
			next = path + "&cursor=" + *page.Next
		}
		if !slices.Equal(names, want) {
			t.Errorf("in pages of %d: %v, want %v", limit, names, want)
		}
	}
	free := a.list(t, "/locks?state=free")
	if len(free.Locks) != 1 || free.Locks[0].Resource != "b" || free.Locks[0].Owner != "" || free.Locks[0].ExpiresAt != nil || free.Locks[0].State != "free" {
		t.Errorf("free = %+v", free)
	}
	if held := a.list(t, "/locks?state=held&prefix=a"); len(held.Locks) != 2 || held.Locks[0].State != "held" {
		t.Errorf("held under a = %+v", held)
	}
	a.ask(t, http.MethodGet, "/locks?state=stale", "").has(t, `"locks":[]`, `"next_cursor":null`)
}

func TestAQueryIsStrict(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	a.take(t, "x", alice)
	for path, pointer := range map[string]string{
		"/locks?limit=0": "/limit", "/locks?limit=1001": "/limit", "/locks?limit=x": "/limit", "/locks?limit=": "/limit", "/locks?state=HELD": "/state",
		"/locks?cursor=*": "/cursor", "/locks?cursor=AA": "/cursor", "/locks?cursor=": "/cursor", "/locks?prefix=%00": "/prefix", "/locks?prefix=%FF": "/prefix",
		"/locks?pre=a": "/pre", "/locks?limit=1&limit=1": "/limit", "/locks/x/history?limit=-1": "/limit", "/locks/x/history?cursor=x": "/cursor",
		"/locks/x/history?cursor=0": "/cursor", "/locks/x/history?before=1": "/before", "/locks/%00/history": "/resource",
	} {
		got := a.ask(t, http.MethodGet, path, "")
		got.is(t, http.StatusUnprocessableEntity, "validation")
		got.has(t, `"pointer":"`+pointer+`"`)
	}
	for _, path := range []string{"/locks?limit=%zz", "/locks/x/history?%zz", "/locks?a;b"} {
		a.ask(t, http.MethodGet, path, "").is(t, http.StatusBadRequest, "malformed")
	}
	got := a.ask(t, http.MethodGet, "/locks?limit=0&state=x&cursor=*", "")
	got.has(t, "/limit", "/state", "/cursor") // all at once
}

func TestHistoryIsNewestFirstAndInPages(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	never := a.ask(t, http.MethodGet, "/locks/x/history", "")
	never.is(t, http.StatusNotFound, "not-found")
	never.has(t, "never taken")
	var tokens []int64
	for range 5 {
		tokens = append(tokens, a.take(t, "x", alice))
		if len(tokens) == 1 {
			a.ask(t, http.MethodGet, "/locks/x/history", "").has(t, `"tenures":[]`, `"next_cursor":null`)
		}
		a.ask(t, http.MethodDelete, "/locks/x", `{"owner":"alice"}`).is(t, http.StatusNoContent, "")
	}
	slices.Reverse(tokens)
	var seen []int64
	for path := "/locks/x/history?limit=2"; path != ""; {
		var page struct {
			Resource string
			Tenures  []struct {
				Token    int64 `json:"fencing_token"`
				Owner    string
				Acquired string `json:"acquired_at"`
				Ended    string `json:"ended_at"`
				How      string
				Refusals *int
			}
			Next *string `json:"next_cursor"`
		}
		decode(t, a.ask(t, http.MethodGet, path, "").body, &page)
		for _, e := range page.Tenures {
			seen = append(seen, e.Token)
			if page.Resource != "x" || e.Owner != "alice" || e.How != "released" || e.Refusals == nil || !microseconds.MatchString(e.Acquired) || e.Ended <= e.Acquired {
				t.Errorf("tenure = %+v", e)
			}
		}
		path = ""
		if page.Next != nil {
			path = "/locks/x/history?limit=2&cursor=" + *page.Next
		}
	}
	if !slices.Equal(seen, tokens) {
		t.Errorf("history = %v, want %v", seen, tokens)
	}
}

func TestACheckComparesTheTargetsMark(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	first := a.take(t, "x", alice)
	check := func(lock string, token int64) reply {
		return a.ask(t, http.MethodPost, "/fences/account%3A42/check", fmt.Sprintf(`{"lock":%q,"fencing_token":%d}`, lock, token))
	}
	got := check("x", first)
	got.is(t, http.StatusOK, "")
	got.has(t, `{"current":true,"last_token":null}`)
	second := a.take(t, "x", alice)
	if err := fence.Claim(t.Context(), a.pool, fence.Token{Lock: "x", Seq: second}, "account:42"); err != nil {
		t.Fatal(err)
	}
	got = check("x", second)
	got.has(t, fmt.Sprintf(`{"current":true,"last_token":%d}`, second))
	got = check("x", first)
	got.is(t, http.StatusConflict, "stale-token")
	got.has(t, `"current":false`, fmt.Sprintf(`"last_token":%d`, second))
	check("another", second+1).is(t, http.StatusConflict, "stale-token")
	check("x", 0).is(t, http.StatusUnprocessableEntity, "validation")
	a.ask(t, http.MethodPost, "/fences/%00/check", `{"lock":"x"}`).has(t, "/resource", "/fencing_token")
}
