package fence_test

import (
	"context"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"pawl/fence"
	"pawl/internal/pgtest"
)

// inTx runs one statement's worth of work in an unguarded transaction, as a service that only honours tokens does.
func inTx(t testing.TB, db fence.DB, fn func(ctx context.Context, tx pgx.Tx) error) error {
	t.Helper()
	return pgx.BeginTxFunc(t.Context(), db, pgx.TxOptions{}, func(tx pgx.Tx) error { return fn(t.Context(), tx) })
}

func check(t testing.TB, db fence.DB, tok fence.Token, target string) error {
	t.Helper()
	return inTx(t, db, func(ctx context.Context, tx pgx.Tx) error { return fence.Check(ctx, tx, tok, target) })
}

func once(t testing.TB, db fence.DB, tok fence.Token, target string) error {
	t.Helper()
	return inTx(t, db, func(ctx context.Context, tx pgx.Tx) error { return fence.Once(ctx, tx, tok, target) })
}

func TestAClaimStopsTheOldHolderBeforeTheNewOneHasWritten(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	a := acquire(t, pool, "job:x", "a", time.Minute)
	for range 2 { // a target without a mark passes, an equal mark too
		if err := check(t, pool, a, "account:42"); err != nil {
			t.Fatal(err)
		}
	}
	b := takeOver(t, pool, a)
	if err := check(t, pool, a, "account:42"); err != nil {
		t.Fatalf("a mark alone can't know of the takeover: %v", err)
	}
	if err := fence.Claim(t.Context(), pool, b, "account:43", "account:42", "account:42"); err != nil {
		t.Fatal(err)
	}
	err := check(t, pool, a, "account:42")
	wantErr(t, err, fence.ErrStale)
	if s := asStale(t, err); s.Current != b.Seq || s.Target != "account:42" || s.Token != a {
		t.Errorf("%+v", s)
	}
	want := "fence: account:42 refused token " + a.String() + ", token " + fence.FormatSeq(b.Seq) + " is current; stop writing and acquire the lock again"
	if err.Error() != want {
		t.Errorf("message %q, want %q", err, want)
	}
	if err := check(t, pool, b, "account:42"); err != nil {
		t.Errorf("the new holder: %v", err)
	}
}

func TestAClaimIsAllOrNothingAndNeedsTheLease(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	marks := func() int { return one[int](t, pool, `select count(*) from pawl.fences where target like 'new%'`) }
	tok := acquire(t, pool, "job:x", "a", time.Minute)
	if err := check(t, pool, fence.Token{Lock: "job:x", Seq: tok.Seq + 9}, "seen"); err != nil {
		t.Fatal(err)
	}
	wantErr(t, fence.Claim(t.Context(), pool, tok, "new1", "seen", "new2"), fence.ErrStale)
	if got := one[string](t, pool, `select target || ' ' || statement from pawl.refusals`); got != "seen claim" {
		t.Errorf("recorded as %q", got)
	}
	takeOver(t, pool, tok)
	wantErr(t, fence.Claim(t.Context(), pool, tok, "new1"), fence.ErrStale, fence.ErrNotHeld)
	if n := marks(); n != 0 {
		t.Errorf("%d marks were raised", n)
	}
	if err := fence.Claim(t.Context(), pool, tok, "new1", ""); err == nil || !strings.Contains(err.Error(), "target is empty") {
		t.Errorf("an empty target: %v", err)
	}
}

func TestTokensOfDifferentLocksDoNotCompare(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	x, y := acquire(t, pool, "job:x", "a", time.Minute), acquire(t, pool, "job:y", "a", time.Minute)
	if err := check(t, pool, x, "account:42"); err != nil {
		t.Fatal(err)
	}
	wantErr(t, check(t, pool, y, "account:42"), fence.ErrOtherLock)
	wantErr(t, once(t, pool, y, "account:42"), fence.ErrOtherLock)
	err := fence.Claim(t.Context(), pool, y, "account:42")
	wantErr(t, err, fence.ErrOtherLock)
	if !strings.Contains(err.Error(), "target account:42 belongs to lock job:x, not to job:y") {
		t.Errorf("message %q", err)
	}
	const record = `select lock = 'job:y' and target = 'account:42' and late_by is null from pawl.refusals`
	if !one[bool](t, pool, record) { // in time, but not its own
		t.Error("the record is wrong")
	}
}

func TestOnceIsOncePerToken(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	a := acquire(t, pool, "job:x", "a", time.Minute)
	if err := once(t, pool, a, "mail:42"); err != nil {
		t.Fatal(err)
	}
	err := once(t, pool, a, "mail:42")
	wantErr(t, err, fence.ErrStale)
	if !strings.Contains(err.Error(), "mail:42 refused token "+a.String()+", which it has seen already") {
		t.Errorf("message %q", err)
	}
	b := takeOver(t, pool, a)
	if err := once(t, pool, b, "mail:42"); err != nil {
		t.Errorf("the next token: %v", err)
	}
	wantErr(t, once(t, pool, a, "mail:42"), fence.ErrStale)
}

// What docs/protocol.md tells users to write beside their own data: the mark may still be null.
func TestANullMarkPassesBothComparisons(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	told := regexp.MustCompile(`(?m)^update account set .* where id = \$2 and (.+);$`).FindAllSubmatch(page, -1)
	if len(told) != 2 {
		t.Fatalf("docs/protocol.md has %d updates of an account, want two", len(told))
	}
	pool := pgtest.New(t)
	exec(t, pool, `create table public.account (id int, last_token bigint)`)
	exec(t, pool, `insert into public.account values (1, null), (2, null)`)
	for i, want := range [][]int64{{1, 1, 0, 1}, {1, 0, 0, 1}} { // often, once per token
		for j, seq := range []int64{5, 5, 4, 6} {
			tag, err := pool.Exec(t.Context(), `update public.account set last_token = $1 where id = $2 and `+string(told[i][1]), seq, i+1)
			if err != nil {
				t.Fatal(err)
			}
			if got := tag.RowsAffected(); got != want[j] {
				t.Errorf("%s: token %d, write %d: %d rows, want %d", told[i][1], seq, j+1, got, want[j])
			}
		}
	}
}

func TestWritersWithOneTokenDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	tok := acquire(t, pool, "job:x", "a", time.Minute)
	if err := fence.Claim(t.Context(), pool, tok, "r", "q"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	one, two := begin(t, pool, pgx.TxOptions{}), begin(t, pool, pgx.TxOptions{})
	for _, step := range []struct {
		tx     pgx.Tx
		target string
	}{{one, "r"}, {two, "q"}, {one, "q"}, {two, "r"}} { // the order that would deadlock
		if err := fence.Check(ctx, step.tx, tok, step.target); err != nil {
			t.Fatal(err)
		}
	}
	if err := fence.Claim(ctx, pool, tok, "q", "r"); err != nil { // beside both
		t.Error(err)
	}
}

func TestClaimsInAnyOrderDoNotDeadlock(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	tok := acquire(t, pool, "job:x", "a", time.Minute)
	targets := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	back := slices.Clone(targets)
	slices.Reverse(back)
	for round := range 20 {
		// Fresh marks: each claim has to write all of them.
		exec(t, pool, `update pawl.fences set last_token = $1`, tok.Seq-1)
		errs := make(chan error)
		orders := [][]string{targets, back, targets, back}
		for _, order := range orders {
			go func() { errs <- fence.Claim(t.Context(), pool, tok, order...) }()
		}
		for range orders {
			if err := <-errs; err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
		}
	}
}

func TestCheckInSQLIsAdvice(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	tok := acquire(t, pool, "job:x", "a", time.Minute)
	const advice = `select (pawl.check($1, $2, 'account:42')).current`
	if !one[bool](t, pool, advice, "job:x", tok.Seq) {
		t.Error("a target without a mark")
	}
	if err := check(t, pool, tok, "account:42"); err != nil {
		t.Fatal(err)
	}
	if !one[bool](t, pool, advice, "job:x", tok.Seq) || one[bool](t, pool, advice, "job:x", tok.Seq-1) || one[bool](t, pool, advice, "job:y", tok.Seq+1) {
		t.Error("equal, older, of another lock: want true, false, false")
	}
}
