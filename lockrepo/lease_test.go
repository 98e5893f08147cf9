package lockrepo

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/fence"
	"pawl/internal/pgtest"
)

func force(t testing.TB, r *Repo, l Lease) Tenure {
	t.Helper()
	pgtest.Force(t, r.cfg.Pool, l.Token.Lock, l.Token.Seq, "holder is stuck")
	all, err := r.History(t.Context(), l.Token.Lock, 1, l.Token.Seq+1)
	if err != nil || len(all) != 1 {
		t.Fatalf("history %v, %v", all, err)
	}
	return all[0]
}

// blocked runs f while a transaction has the lock's row, and rolls that back
// once f waits for it. Before the rollback it lets the lease run out.
func blocked(t *testing.T, pool *pgxpool.Pool, lock string, f func() error) error {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	run(t, tx, "select token::text from pawl.locks where name = $1 for update", lock)
	done := make(chan error, 1)
	go func() { done <- f() }()
	pgtest.Eventually(t, 10*time.Second, "somebody waits for the row and the lease is over", func() bool {
		return run(t, pool, `select (exists (select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database())
			and (select expires_at <= clock_timestamp() from pawl.locks where name = $1))::text`, lock) == "true"
	})
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	return <-done
}

func TestARenewalThatHadToWaitNeverRevivesALease(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	r := newRepo(t, pool, "a")
	l, err := r.Acquire(t.Context(), "x", 400*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	// Its own deadline would end the wait: the question is what the statement does.
	err = blocked(t, pool, "x", func() error {
		var until, now time.Time
		return r.ask(t.Context(), query{renewSQL, []any{"x", l.Token.Seq, l.Grant.String(), time.Minute}, single(&until, &now)})
	})
	if !errors.Is(err, pgx.ErrNoRows) {
		t.Errorf("renewed after its end: %v", err)
	}
	if _, err := r.Renew(t.Context(), l); !errors.Is(err, ErrExpired) {
		t.Errorf("Renew after the end = %v, want ErrExpired", err)
	}
	n := &line{cfg: pool.Config(), m: r.m}
	defer n.close()
	l, err = r.Acquire(t.Context(), "x", 400*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	var out verdict
	if err := blocked(t, pool, "x", func() (err error) { out, _, err = n.one(t.Context(), l); return err }); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(out.lost, ErrExpired) {
		t.Errorf("a single renewal after the wait: %+v, want lost", out)
	}
}

func TestABatchSkipsALockedRowAndTellsTheCauses(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	r := newRepo(t, pool, "a")
	var ls []Lease
	for _, name := range []string{"live", "locked", "expired", "taken", "forced", "released", "deleted"} {
		ls = append(ls, mustAcquire(t, r, name))
	}
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	run(t, tx, "select token::text from pawl.locks where name = 'locked' for update")
	expire(t, pool, "expired")
	expire(t, pool, "taken")
	heir := mustAcquire(t, r, "taken")
	force(t, r, ls[4])
	mustAcquire(t, r, "forced") // a successor doesn't hide the force
	if err := r.Release(t.Context(), ls[5]); err != nil {
		t.Fatal(err)
	}
	run(t, pool, "delete from pawl.locks where name = 'deleted'")
	n := &line{cfg: pool.Config(), m: r.m}
	defer n.close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	out, now, err := n.batch(ctx, ls)
	if err != nil || now.IsZero() {
		t.Fatal(err)
	}
	if !out[0].expires.After(ls[0].ExpiresAt) || out[0].lost != nil {
		t.Errorf("live: %+v", out[0])
	}
	if out[1] != (verdict{}) {
		t.Errorf("locked: %+v, want no verdict", out[1])
	}
	for i, want := range map[int]error{2: ErrExpired, 3: ErrTakenOver, 4: ErrForced, 5: ErrNotHeld, 6: ErrExpired} {
		if !errors.Is(out[i].lost, want) {
			t.Errorf("%s: %v, want %v", ls[i].Token.Lock, out[i].lost, want)
		}
	}
	if out[3].lost.Successor != heir.Token.Seq {
		t.Errorf("successor %d, want %d", out[3].lost.Successor, heir.Token.Seq)
	}
	short, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if _, _, err := n.one(short, ls[1]); err == nil || n.conn.IsClosed() {
		t.Errorf("a locked row: %v; want the server to give up and the connection to live on", err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if v, _, err := n.one(t.Context(), ls[1]); err != nil || v.expires.IsZero() {
		t.Errorf("after the lock: %+v, %v", v, err)
	}
	if got := run(t, pool, "select beats::text || ' ' || (longest_gap > '0')::text from pawl.locks where name = 'live'"); got != "1 true" {
		t.Errorf("beats and gap %q", got)
	}
}

func TestAReleaseKeepsTheRowAndIsNotRepeated(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	r := newRepo(t, pool, "a")
	l := mustAcquire(t, r, "x")
	if err := r.Release(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	if err := r.Release(t.Context(), l); !errors.Is(err, ErrNotHeld) {
		t.Errorf("second release: %v, want ErrNotHeld", err)
	}
	i, err := r.Show(t.Context(), "x")
	if err != nil || i.State != Free || i.Token != l.Token.Seq || i.Holder != "" {
		t.Errorf("after the release: %+v, %v", i, err)
	}
	next := mustAcquire(t, r, "x")
	if err := r.Release(t.Context(), l); !errors.Is(err, ErrNotHeld) { // a stale one ends nobody's lease
		t.Errorf("stale release: %v", err)
	}
	if next, err = r.Renew(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	expire(t, pool, "x")
	if err := r.Release(t.Context(), next); !errors.Is(err, ErrExpired) || !errors.Is(err, ErrNotHeld) {
		t.Errorf("release after the end: %v, want ErrExpired", err)
	}
	last := mustAcquire(t, r, "x")
	if last.Token.Seq <= next.Token.Seq {
		t.Error("token does not grow")
	}
	if got := ends(t, r); got != "released taken_over>?" { // the expired one has got its successor
		t.Errorf("history %q", got)
	}
	if got := run(t, pool, "select successor::text from pawl.tenures where how = 'taken_over'"); got != run(t, pool, "select $1::bigint::text", last.Token.Seq) {
		t.Errorf("successor %s, want %d", got, last.Token.Seq)
	}
}

func TestAForcedReleaseNeverWaitsAndTheNextHolderDoes(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	r := newRepo(t, pool, "a")
	l := mustAcquire(t, r, "x")
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := fence.Guard(t.Context(), tx, l.Token); err != nil {
		t.Fatal(err)
	}
	for want, l := range map[string]Lease{"not_held": {Token: fence.Token{Lock: "x", Seq: l.Token.Seq - 1}}, "absent": {Token: fence.Token{Lock: "y", Seq: 1}}} {
		if got, err := pgtest.TryForce(t.Context(), pool, l.Token.Lock, l.Token.Seq, "holder is stuck"); got != want || err != nil {
			t.Errorf("force of %s: %q, %v, want %s", l.Token, got, err, want)
		}
	}
	if e := force(t, r, l); e.How != "forced" || e.Holder != "a" || e.Token != l.Token.Seq { // step one: it passes the guard
		t.Errorf("tenure %+v", e)
	}
	if _, err := r.Renew(t.Context(), l); !errors.Is(err, ErrForced) {
		t.Errorf("renewal after the force: %v, want ErrForced", err)
	}
	err = fence.Do(t.Context(), pool, l.Token, func(pgx.Tx) error { return nil })
	if !errors.Is(err, fence.ErrNotHeld) {
		t.Errorf("new guard after the force: %v, want ErrNotHeld", err)
	}
	var held *HeldError
	if _, err := r.Acquire(t.Context(), "x", 0); !errors.As(err, &held) || held.Holder != "" {
		t.Errorf("acquire while the guarded transaction drains: %v, want ErrHeld by nobody", err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	heir := mustAcquire(t, newRepo(t, pool, "b"), "x")
	claims, err := r.StaleClaims(t.Context(), StaleFilter{})
	if err != nil || len(claims) != 1 {
		t.Fatalf("stale claims %v, %v", claims, err)
	}
	if c := claims[0]; c.How != "forced" || c.Successor == nil || *c.Successor != heir.Token.Seq || c.SuccessorHolder != "b" || !c.SuccessorAt.Equal(heir.AcquiredAt) {
		t.Errorf("the forced lease: %+v, want its successor %+v", c, heir)
	}
}

var changing = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z|\d{16}|0\.\d+`)

// golden compares the JSON of v, with times, tokens and short durations as #.
func golden(t *testing.T, v any, want string) {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if got := changing.ReplaceAllString(string(b), "#"); got != want {
		t.Errorf("JSON\n%s\nwant\n%s", got, want)
	}
}

func TestListsHaveTheShapesThatAreWritten(t *testing.T) {
	t.Parallel()
	ctx, pool := t.Context(), pgtest.New(t)
	r := newRepo(t, pool, "a")
	held, err := r.AcquireRequest(ctx, Request{Lock: "p/held", Key: "k", TTL: 90 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = r.Renew(ctx, held); err != nil {
		t.Fatal(err)
	}
	run(t, pool, `insert into pawl.runs (id, job, key, revision, attempt, lock, token) values ($1, 'settle', '2026-09-16', 1, 1, 'p/held', $2)`, held.Grant, held.Token.Seq)
	if err := r.Release(ctx, mustAcquire(t, r, "p/free")); err != nil {
		t.Fatal(err)
	}
	old := mustAcquire(t, r, "p/stale")
	expire(t, pool, "p/stale")
	mustAcquire(t, r, "q")
	all, err := r.List(ctx, Filter{Prefix: "p/"})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, all, `[{"lock":"p/free","state":"free","holder":"","key":"","token":#,"acquired_at":"#","renewed_at":"#","expires_at":null,"ttl":60,"job":"","period":""},`+
		`{"lock":"p/held","state":"held","holder":"a","key":"k","token":#,"acquired_at":"#","renewed_at":"#","expires_at":"#","ttl":90,"job":"settle","period":"2026-09-16"},`+
		`{"lock":"p/stale","state":"stale","holder":"a","key":"","token":#,"acquired_at":"#","renewed_at":"#","expires_at":"#","ttl":60,"job":"","period":""}]`)
	if all[1].Beats != 1 || all[1].LongestGap <= 0 || all[1].ReadAt.IsZero() {
		t.Errorf("held: %+v", all[1])
	}
	for _, c := range []struct {
		f    Filter
		want int
	}{{Filter{}, 4}, {Filter{State: Stale}, 1}, {Filter{Limit: 2}, 2}, {Filter{After: "p/held"}, 2}, {Filter{Prefix: "%"}, 0}} {
		if ls, err := r.List(ctx, c.f); err != nil || len(ls) != c.want {
			t.Errorf("List(%+v): %d, %v; want %d", c.f, len(ls), err, c.want)
		}
	}
	// A stale claim is listed before anybody has taken it, and after.
	claims, err := r.StaleClaims(ctx, StaleFilter{})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, claims, `[{"lock":"p/stale","token":#,"holder":"a","acquired_at":"#","ended_at":"#","how":"expired","successor":null,"refusals":0,"beats":0,"longest_gap":0,"key":"","key_name":"","request_id":""}]`)
	b := newRepo(t, pool, "b")
	heir := mustAcquire(t, b, "p/stale")
	if err := fence.Refused(ctx, pool, old.Token, "public.ledger", "insert into ledger"); err != nil {
		t.Fatal(err)
	}
	if claims, err = r.StaleClaims(ctx, StaleFilter{}); err != nil {
		t.Fatal(err)
	}
	golden(t, claims, `[{"lock":"p/stale","token":#,"holder":"a","acquired_at":"#","ended_at":"#","how":"taken_over","successor":#,"refusals":1,"beats":0,"longest_gap":0,"key":"","key_name":"","request_id":""}]`)
	if c := claims[0]; c.SuccessorHolder != "b" || !c.SuccessorAt.Equal(heir.AcquiredAt) || *c.Successor != heir.Token.Seq {
		t.Errorf("successor %+v, want %+v", c, heir)
	}
	refused, err := r.Refusals(ctx, RefusalFilter{Lock: "p/stale"})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, refused, `[{"at":"#","lock":"p/stale","token":#,"current":#,"holder":"a","late_by":#,"target":"public.ledger","statement":"insert into ledger","passed":false}]`)
	none, err := r.Refusals(ctx, RefusalFilter{Before: refused[0].ID})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, none, `[]`)
	// What log mode let pass is told apart, and is no refused write of the lease.
	run(t, pool, `insert into pawl.refusals (lock, target, statement, passed, nth) values ('p/stale', 'public.ledger', 'UPDATE', true, null)`)
	run(t, pool, `insert into pawl.refusals (lock, token, passed, nth) values ('p/stale', $1, true, null)`, old.Token.Seq)
	passed, err := r.Refusals(ctx, RefusalFilter{Kind: Passed})
	if err != nil || len(passed) != 2 {
		t.Fatalf("passed: %v, %v", passed, err)
	}
	golden(t, passed[1:], `[{"at":"#","lock":"p/stale","token":null,"current":0,"holder":"","late_by":null,"target":"public.ledger","statement":"UPDATE","passed":true}]`)
	for kind, want := range map[string]int{Refused: 1, "": 3} {
		if rs, err := r.Refusals(ctx, RefusalFilter{Kind: kind}); err != nil || len(rs) != want {
			t.Errorf("refusals of kind %q: %d, %v; want %d", kind, len(rs), err, want)
		}
	}
	if _, err := r.Refusals(ctx, RefusalFilter{Kind: "late"}); err == nil || !strings.Contains(err.Error(), `kind "late" does not exist: use refused or passed`) {
		t.Errorf("a kind that doesn't exist: %v", err)
	}
	history, err := r.History(ctx, "p/stale", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if claims, err = r.StaleClaims(ctx, StaleFilter{}); err != nil || claims[0].Refusals != 1 || history[0].Refusals != 1 {
		t.Errorf("stale claims %+v, history %+v, %v; want one refused write", claims, history, err)
	}
	if h, err := r.History(ctx, "p/stale", 1, old.Token.Seq); err != nil || len(h) != 0 {
		t.Errorf("history before the first: %v, %v", h, err)
	}
}

func TestSecondsAreNumbers(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{0: "0", time.Minute: "60", 250 * time.Millisecond: "0.25", 1500*time.Microsecond + 1: "0.0015", 90 * 24 * time.Hour: "7776000"} {
		b, err := json.Marshal(Seconds(d))
		var back Seconds
		if err != nil || string(b) != want || json.Unmarshal(b, &back) != nil || back.Duration() != d.Round(time.Microsecond) {
			t.Errorf("%v: %s, %v, %v; want %s", d, b, back, err, want)
		}
	}
}

// A table under trial may let millions of writes through; the one that was refused is still found at once.
func TestAFloodOfOneKindDoesNotBuryTheOther(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	for _, sql := range []string{
		`insert into pawl.refusals (lock) values ('x')`,
		`insert into pawl.refusals (lock, passed, nth) select 'x', true, null from generate_series(1, 20000)`,
		`analyze pawl.refusals`,
	} {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []RefusalFilter{{Kind: Refused}, {Kind: Refused, Lock: "x"}, {Kind: Refused, Since: time.Now().Add(-time.Hour)}} {
		sql, args, err := f.sql()
		if err != nil {
			t.Fatal(err)
		}
		if used := readsLittle(t, pool, 1, sql, args...); !strings.Contains(used, "refusals_kind") && !strings.Contains(used, "refusals_lock") {
			t.Errorf("%+v is looked for by %s", f, used)
		}
	}
}
