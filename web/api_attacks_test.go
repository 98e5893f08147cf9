package web_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
)

const (
	alice   = `{"owner":"alice","ttl_seconds":60}`
	bob     = `{"owner":"bob","ttl_seconds":60}`
	mallory = `{"owner":"mallory","ttl_seconds":3600}`
	brief   = `{"owner":"alice","ttl_seconds":1}`
)

// The twelve attacks of the document that this API follows.

func TestATK01AHeldLockIsNotAcquired(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	a.take(t, "x", alice)
	got := a.ask(t, http.MethodPost, "/locks/x", mallory)
	got.is(t, http.StatusOK, "")
	if d := got.doc(t); *d.Acquired || d.Resource != "x" || d.Expires == nil || got.header.Get("Retry-After") != "30" || got.header.Get("Fencing-Token") != "" {
		t.Errorf("answer = %v %s, want a refusal with its end", got.header, got.body)
	}
	if d := a.ask(t, http.MethodGet, "/locks/x", "").doc(t); d.Lock.Owner != "alice" || d.Lock.TTL != 60 {
		t.Errorf("lock = %+v, want alice's as it was", d.Lock)
	}
}

func TestATK02AnothersLockIsNotReleased(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	token := a.take(t, "x", alice)
	a.ask(t, http.MethodDelete, "/locks/x", `{"owner":"mallory"}`).is(t, http.StatusForbidden, "owner-mismatch")
	a.ask(t, http.MethodDelete, "/locks/x?owner=mallory", "").is(t, http.StatusForbidden, "owner-mismatch")
	if d := a.ask(t, http.MethodGet, "/locks/x", "").doc(t); d.Lock.FencingToken != token {
		t.Errorf("lock = %+v, want alice's", d.Lock)
	}
}

func TestATK03AnExpiredLockIsTakenWithALargerToken(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	first := a.take(t, "x", brief)
	a.expired(t)
	if second := a.take(t, "x", bob); second <= first {
		t.Errorf("token %d after %d", second, first)
	}
}

func TestATK04AnothersLockIsNotRenewed(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	a.take(t, "x", alice)
	before := a.ask(t, http.MethodGet, "/locks/x", "").body
	a.ask(t, http.MethodPost, "/locks/x/renew", mallory).is(t, http.StatusForbidden, "owner-mismatch")
	if after := a.ask(t, http.MethodGet, "/locks/x", "").body; after != before {
		t.Errorf("lock = %s, want %s", after, before)
	}
}

func TestATK05ZeroAndNegativeTTLsAreRefused(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	for _, ttl := range []string{"0", "-1", "-100", "-0", "-9223372036854775808"} {
		for _, path := range []string{"/locks/x", "/locks/x/renew"} {
			got := a.ask(t, http.MethodPost, path, `{"owner":"a","ttl_seconds":`+ttl+`}`)
			got.is(t, http.StatusUnprocessableEntity, "validation")
			got.has(t, `"pointer":"/ttl_seconds"`)
		}
	}
	a.ask(t, http.MethodGet, "/locks/x", "").is(t, http.StatusNotFound, "not-found")
}

func TestATK06SQLInANameIsAName(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	const name = `x'; drop table pawl.locks; --`
	got := a.ask(t, http.MethodPost, "/locks/x%27%3B%20drop%20table%20pawl.locks%3B%20--", `{"owner":"o'); drop table pawl.locks; --","ttl_seconds":60}`)
	got.is(t, http.StatusOK, "")
	if d := got.doc(t); d.Lock.Resource != name || d.Lock.Owner != "o'); drop table pawl.locks; --" {
		t.Errorf("lock = %+v, want the name as it is", d.Lock)
	}
	a.ask(t, http.MethodGet, "/locks?prefix=x%27%3B", "").has(t, name)
}

func TestATK07EmptyAndBlankOwnersAreRefused(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	for _, owner := range []string{`""`, `" "`, `"\t\n"`, `"\u00a0"`, `"\u200b"`, `null`} {
		got := a.ask(t, http.MethodPost, "/locks/x", `{"owner":`+owner+`,"ttl_seconds":5}`)
		got.is(t, http.StatusUnprocessableEntity, "validation")
		got.has(t, `"pointer":"/owner"`)
		a.ask(t, http.MethodDelete, "/locks/x", `{"owner":`+owner+`}`).is(t, http.StatusUnprocessableEntity, "validation")
	}
}

func TestATK08OnlyAnIntegerIsATTL(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	for _, ttl := range []string{`"3600"`, "60.5", "60.0", "1e3", "true", "null", "[60]", "{}", "86401", "99999999999999999999"} {
		a.ask(t, http.MethodPost, "/locks/x", `{"owner":"a","ttl_seconds":`+ttl+`}`).is(t, http.StatusUnprocessableEntity, "validation")
	}
}

func TestATK09TheHolderAcquiresAgainWithALargerToken(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	first := a.ask(t, http.MethodPost, "/locks/x", alice).doc(t)
	second := a.ask(t, http.MethodPost, "/locks/x", `{"owner":"alice","ttl_seconds":90}`).doc(t)
	if second.Lock.FencingToken <= first.Lock.FencingToken || second.Lock.AcquiredAt <= first.Lock.AcquiredAt || second.Lock.ExpiresAt <= first.Lock.ExpiresAt {
		t.Errorf("second grant %+v after %+v: token, start and end must grow", second.Lock, first.Lock)
	}
	got := a.ask(t, http.MethodGet, "/locks/x/history", "")
	got.has(t, `"how":"reacquired"`, fmt.Sprintf(`"fencing_token":%d`, first.Lock.FencingToken))
	tag := fmt.Sprintf(`"%d"`, first.Lock.FencingToken)
	a.ask(t, http.MethodPost, "/locks/x/renew", alice, "If-Match", tag).is(t, http.StatusPreconditionFailed, "precondition-failed")
}

func TestATK10OfConcurrentAcquiresOneWins(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	for round := range 10 {
		tokens := make([]int64, 2)
		var both sync.WaitGroup
		for i := range tokens {
			both.Go(func() {
				tokens[i] = a.take(t, fmt.Sprintf("race-%d", round), fmt.Sprintf(`{"owner":"o%d","ttl_seconds":60}`, i))
			})
		}
		both.Wait()
		if (tokens[0] > 0) == (tokens[1] > 0) {
			t.Fatalf("round %d: tokens %v, want one", round, tokens)
		}
	}
}

func TestATK11AnAbsentOrExpiredLockIsNotFound(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	a.ask(t, http.MethodGet, "/locks/x", "").is(t, http.StatusNotFound, "not-found")
	a.take(t, "x", brief)
	a.expired(t)
	got := a.ask(t, http.MethodGet, "/locks/x", "")
	got.is(t, http.StatusNotFound, "not-found")
	got.lacks(t, "alice")
}

func TestATK12ALongNameIsRefused(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	if a.take(t, strings.Repeat("r", 255), alice) == 0 {
		t.Error("255 bytes are too many, want them allowed")
	}
	for _, name := range []string{strings.Repeat("r", 256), strings.Repeat("%E2%82%AC", 86), strings.Repeat("r", 9000)} {
		for _, method := range []string{http.MethodPost, http.MethodGet} {
			got := a.ask(t, method, "/locks/"+name, alice)
			got.is(t, http.StatusUnprocessableEntity, "validation")
			got.has(t, `"pointer":"/resource"`)
		}
	}
	got := a.ask(t, http.MethodGet, "/locks/"+strings.Repeat("r", 30000), "")
	if got.status != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a name of 30 kB = %d, want 431", got.status)
	}
}
