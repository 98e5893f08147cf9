package keys

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/internal/pgtest"
)

// watch is a clock that only a test moves.
type watch struct {
	mu sync.Mutex
	at time.Time
}

func (w *watch) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.at
}

func (w *watch) add(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at = w.at.Add(d)
}

func newStore(pool *pgxpool.Pool) (*Store, *watch) {
	w := &watch{at: time.Date(2026, 9, 16, 0, 0, 0, 0, time.UTC)}
	s := New(pool)
	s.now = w.now
	return s, w
}

func mustCreate(t *testing.T, s *Store, k Key) (string, Key) {
	t.Helper()
	if k.Role == "" {
		k.Role = Worker
	}
	k.CreatedBy = "ops"
	bearer, made, err := s.Create(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	return bearer, made
}

func run(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) string {
	t.Helper()
	var s string
	if err := pool.QueryRow(t.Context(), sql, args...).Scan(&s); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return s
}

func TestAKeyIsShownOnceAndItsSecretIsNotKept(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	s, _ := newStore(pool)
	end := time.Now().Add(time.Hour).UTC().Truncate(time.Microsecond)
	bearer, k := mustCreate(t, s, Key{Name: "settlement", Role: Operator, Prefix: "payments/", Approver: true, ExpiresAt: &end})
	m := regexp.MustCompile(`^pawl_([a-z0-9]{12})_([a-z0-9]{26})$`).FindStringSubmatch(bearer)
	if m == nil || m[1] != k.ID {
		t.Fatalf("bearer %q of key %q", bearer, k.ID)
	}
	if k.Name != "settlement" || k.Role != Operator || k.Prefix != "payments/" || !k.Approver || k.CreatedBy != "ops" ||
		!k.ExpiresAt.Equal(end) || k.RevokedAt != nil || k.LastUsedAt != nil || time.Since(k.CreatedAt).Abs() > time.Minute || k.CreatedAt.Location() != time.UTC {
		t.Errorf("made %+v", k)
	}
	if kept := run(t, pool, `select string_agg(k::text, ' ') || (select string_agg(a::text, ' ') from pawl.audit a) from pawl.keys k`); strings.Contains(kept, m[2]) {
		t.Errorf("the secret is kept: %s", kept)
	}
	if got := run(t, pool, `select (secret = sha256($1::text::bytea))::text from pawl.keys`, m[2]); got != "true" {
		t.Error("kept is not the SHA-256 of the secret")
	}
	got, err := s.Check(t.Context(), bearer)
	if err != nil || got.ID != k.ID || got.Prefix != "payments/" || got.Role != Operator || !got.Approver {
		t.Errorf("Check = %+v, %v", got, err)
	}
	if other, _ := mustCreate(t, s, Key{Name: "other"}); other == bearer {
		t.Error("two keys are the same")
	}
}

func TestABearerThatIsNotGoodIsAlwaysTheSameError(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	s, w := newStore(pool)
	bearer, k := mustCreate(t, s, Key{Name: "a"})
	other, _ := mustCreate(t, s, Key{Name: "b"})
	revoked, r := mustCreate(t, s, Key{Name: "revoked"})
	if _, err := s.Revoke(t.Context(), r.ID, "ops"); err != nil {
		t.Fatal(err)
	}
	old, e := mustCreate(t, s, Key{Name: "expired"})
	run(t, pool, `update pawl.keys set expires_at = clock_timestamp() where id = $1 returning id`, e.ID)
	w.add(time.Hour)
	secret := bearer[strings.LastIndex(bearer, "_")+1:]
	for reason, bad := range map[string]string{
		"an empty one":               "",
		"another scheme":             "river_" + bearer[5:],
		"no secret":                  "pawl_" + k.ID,
		"an empty secret":            "pawl_" + k.ID + "_",
		"no id":                      "pawl__" + secret,
		"a wrong secret":             bearer + "a",
		"half a secret":              bearer[:len(bearer)-1],
		"a secret in upper case":     "pawl_" + k.ID + "_" + strings.ToUpper(secret),
		"another key's secret":       "pawl_" + k.ID + "_" + other[strings.LastIndex(other, "_")+1:],
		"an id that there isn't":     "pawl_aaaaaaaaaaaa_" + secret,
		"an id with SQL":             "pawl_' or true--_" + secret,
		"an id in upper case":        "pawl_" + strings.ToUpper(k.ID) + "_" + secret,
		"bytes that are no text":     "pawl_\xff_\x00",
		"a revoked key":              revoked,
		"an expired key":             old,
		"a long one":                 bearer + strings.Repeat("a", 4096),
		"a good one with a newline":  bearer + "\n",
		"a good one after its space": " " + bearer,
	} {
		got, err := s.Check(t.Context(), bad)
		if !errors.Is(err, ErrUnknownKey) || got != (Key{}) {
			t.Errorf("%s: %+v, %v", reason, got, err)
		}
		if err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("%s: the error tells the secret: %v", reason, err)
		}
	}
	if _, err := s.Check(t.Context(), bearer); err != nil {
		t.Errorf("the good one: %v", err)
	}
}

func TestARightKeyIsRememberedForASecondAndNoLonger(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	s, w := newStore(pool)
	elsewhere, _ := newStore(pool)
	bearer, k := mustCreate(t, s, Key{Name: "a"})
	if _, err := s.Check(t.Context(), bearer); err != nil {
		t.Fatal(err)
	}
	if _, err := elsewhere.Revoke(t.Context(), k.Name, "ops"); err != nil {
		t.Fatal(err)
	}
	w.add(time.Second - 1)
	if _, err := s.Check(t.Context(), bearer); err != nil {
		t.Errorf("within the second: %v", err)
	}
	w.add(1)
	if _, err := s.Check(t.Context(), bearer); !errors.Is(err, ErrUnknownKey) {
		t.Errorf("after a second: %v", err)
	}
	if _, err := elsewhere.Check(t.Context(), bearer); !errors.Is(err, ErrUnknownKey) {
		t.Errorf("where it was revoked: %v", err)
	}
}

func TestWhoRevokesForgetsAtOnce(t *testing.T) {
	t.Parallel()
	s, _ := newStore(pgtest.New(t))
	bearer, k := mustCreate(t, s, Key{Name: "a"})
	if _, err := s.Check(t.Context(), bearer); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Revoke(t.Context(), k.ID, "ops"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Check(t.Context(), bearer); !errors.Is(err, ErrUnknownKey) {
		t.Errorf("%v", err)
	}
}

func TestAKeyEndsWhenItExpires(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	s, w := newStore(pool)
	soon := time.Now().Add(time.Hour)
	bearer, k := mustCreate(t, s, Key{Name: "a", ExpiresAt: &soon})
	if _, err := s.Check(t.Context(), bearer); err != nil {
		t.Fatalf("before: %v", err)
	}
	run(t, pool, `update pawl.keys set expires_at = clock_timestamp() where id = $1 returning id`, k.ID)
	w.add(2 * time.Second)
	if _, err := s.Check(t.Context(), bearer); !errors.Is(err, ErrUnknownKey) {
		t.Errorf("after: %v", err)
	}
	past := time.Now().Add(-time.Hour)
	_, _, err := s.Create(t.Context(), Key{Name: "b", Role: Reader, CreatedBy: "ops", ExpiresAt: &past})
	if err == nil || !strings.Contains(err.Error(), "not in the future: give a later one") {
		t.Errorf("made one that has expired: %v", err)
	}
}

func TestAKeyIsRevokedByItsIdOrItsNameAndStaysSo(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	s, _ := newStore(pool)
	_, a := mustCreate(t, s, Key{Name: "a"})
	_, b := mustCreate(t, s, Key{Name: a.ID}) // named like the other's id
	k, err := s.Revoke(t.Context(), a.ID, "ops")
	if err != nil || k.ID != a.ID || k.RevokedAt == nil {
		t.Errorf("by id: %+v, %v", k, err)
	}
	again, err := s.Revoke(t.Context(), "a", "somebody else")
	if err != nil || again.ID != a.ID || !again.RevokedAt.Equal(*k.RevokedAt) {
		t.Errorf("again, by name: %+v, %v", again, err)
	}
	if got := run(t, pool, `select revoked_by from pawl.keys where id = $1`, a.ID); got != "ops" {
		t.Errorf("revoked by %q", got)
	}
	for _, none := range []string{"", "nobody", "a\x00"} {
		if _, err := s.Revoke(t.Context(), none, "ops"); !errors.Is(err, ErrNotFound) {
			t.Errorf("%q: %v", none, err)
		}
	}
	all, err := s.List(t.Context())
	if err != nil || len(all) != 2 || all[0].ID != a.ID || all[0].RevokedAt == nil || all[1].ID != b.ID || all[1].RevokedAt != nil {
		t.Errorf("List = %+v, %v", all, err)
	}
}

func TestWhatPeopleDoWithKeysIsWrittenDown(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	s, _ := newStore(pool)
	_, k := mustCreate(t, s, Key{Name: "a", Role: Operator, Prefix: "p/"})
	for range 2 {
		if _, err := s.Revoke(t.Context(), "a", "someone"); err != nil {
			t.Fatal(err)
		}
	}
	_, _, err := s.Create(t.Context(), Key{Name: "a", Role: Reader, CreatedBy: "ops"})
	if !errors.Is(err, ErrNameTaken) {
		t.Errorf("the same name again: %v", err)
	}
	want := "ops key_create " + k.ID + " a operator p/,someone key_revoke " + k.ID + " a"
	got := run(t, pool, `select string_agg(concat_ws(' ', actor, action, detail ->> 'id', detail ->> 'name', detail ->> 'role', detail ->> 'prefix'), ',' order by id) from pawl.audit`)
	if got != want {
		t.Errorf("audit %q, want %q", got, want)
	}
}

func TestADatabaseThatHadAKeyNeverLooksLikeOneWithout(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	s, w := newStore(pool)
	maker, _ := newStore(pool)
	any := func(want bool, when string) {
		t.Helper()
		if got, err := s.Any(t.Context()); err != nil || got != want {
			t.Errorf("%s: %v, %v", when, got, err)
		}
	}
	any(false, "at first")
	_, k := mustCreate(t, maker, Key{Name: "a"})
	any(false, "within a second")
	if got, err := maker.Any(t.Context()); err != nil || !got {
		t.Errorf("where it was made: %v, %v", got, err)
	}
	if _, err := maker.Revoke(t.Context(), k.ID, "ops"); err != nil {
		t.Fatal(err)
	}
	w.add(time.Second)
	any(true, "after a second, and it is revoked")
	run(t, pool, `delete from pawl.keys returning id`)
	w.add(time.Hour)
	any(true, "for ever")
}

func TestTheLastUseIsKeptToTheMinute(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	s, w := newStore(pool)
	bearer, _ := mustCreate(t, s, Key{Name: "a"})
	used := func() string {
		w.add(time.Minute)
		if _, err := s.Check(t.Context(), bearer); err != nil {
			t.Fatal(err)
		}
		return run(t, pool, `select coalesce(last_used_at::text, 'never') from pawl.keys`)
	}
	first := used()
	if first == "never" {
		t.Fatal("a use is not noted")
	}
	if again := used(); again != first {
		t.Error("each use is written")
	}
	run(t, pool, `update pawl.keys set last_used_at = clock_timestamp() - interval '61 s' returning id`)
	if got := run(t, pool, `select (last_used_at < clock_timestamp() - interval '1 min')::text from pawl.keys`); got != "true" {
		t.Fatal(got)
	}
	used()
	if got := run(t, pool, `select (last_used_at > clock_timestamp() - interval '1 min')::text from pawl.keys`); got != "true" {
		t.Error("a later use is not noted")
	}
	if _, err := s.Check(t.Context(), bearer+"x"); err == nil || run(t, pool, `select count(*)::text from pawl.keys where last_used_at is null`) != "0" {
		t.Error(err)
	}
}

func TestAWrongKeyIsNotAUse(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	s, _ := newStore(pool)
	bearer, _ := mustCreate(t, s, Key{Name: "a"})
	if _, err := s.Check(t.Context(), bearer+"a"); !errors.Is(err, ErrUnknownKey) {
		t.Error(err)
	}
	if got := run(t, pool, `select coalesce(last_used_at::text, 'never') from pawl.keys`); got != "never" {
		t.Errorf("used %s", got)
	}
}

func TestADatabaseThatIsAwayIsNoWrongKey(t *testing.T) {
	t.Parallel()
	s, _ := newStore(pgtest.New(t))
	bearer, _ := mustCreate(t, s, Key{Name: "a"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Check(ctx, bearer); err == nil || errors.Is(err, ErrUnknownKey) {
		t.Errorf("Check: %v", err)
	}
	fresh, _ := newStore(s.pool)
	if ok, err := fresh.Any(ctx); err == nil || ok {
		t.Errorf("Any: %v, %v", ok, err)
	}
	if ok, err := fresh.Any(t.Context()); err != nil || !ok {
		t.Errorf("Any, when it is back: %v, %v", ok, err)
	}
}

func TestWhatIsRememberedIsBounded(t *testing.T) {
	t.Parallel()
	s, w := newStore(nil)
	for i := range mostRem + 10 {
		s.remember([32]byte{byte(i), byte(i >> 8)}, remembered{until: w.now().Add(memory)}, w.now())
	}
	if n := len(s.known); n != mostRem {
		t.Errorf("%d remembered", n)
	}
	w.add(memory)
	s.remember([32]byte{31: 1}, remembered{until: w.now().Add(memory)}, w.now())
	if n := len(s.known); n != 1 {
		t.Errorf("%d remembered after a second", n)
	}
}
