package fence_test

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/fence"
	"pawl/internal/pgtest"
)

// raised runs sql, which must fail, and returns what the server says.
func raised(t testing.TB, pool *pgxpool.Pool, sql string, args ...any) *pgconn.PgError {
	t.Helper()
	var pg *pgconn.PgError
	if _, err := pool.Exec(t.Context(), sql, args...); !errors.As(err, &pg) {
		t.Fatalf("%s: %v, want an error of the server's", sql, err)
	}
	return pg
}

// Somebody who calls it from psql sees the message alone: it says which reason it is.
func TestAGuardSaysWhyTheLeaseIsNotHeld(t *testing.T) {
	t.Parallel()
	const forced = `with l as (update pawl.locks set grant_id = null, holder = null, expires_at = null where name = $1 returning *)
		insert into pawl.tenures (lock, token, grant_id, ended_at, how) select name, token, gen_random_uuid(), '2026-09-16 02:09Z', 'forced' from l`
	const at = `\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} UTC`
	for name, c := range map[string]struct {
		arrange func(t *testing.T, pool *pgxpool.Pool, tok fence.Token)
		want    string
	}{
		"a newer token": {
			func(t *testing.T, pool *pgxpool.Pool, tok fence.Token) { t.Helper(); takeOver(t, pool, tok) },
			`token N is stale: \d{16} is current, held by b \[PW001\]`,
		},
		"a newer token that has ended too": {
			func(t *testing.T, pool *pgxpool.Pool, tok fence.Token) {
				t.Helper()
				expire(t, pool, takeOver(t, pool, tok))
			},
			`token N is stale: \d{16} is current, held by b until its lease ended \[PW001\]`,
		},
		"a newer token that was released": {
			func(t *testing.T, pool *pgxpool.Pool, tok fence.Token) {
				t.Helper()
				exec(t, pool, forced, takeOver(t, pool, tok).Lock)
			},
			`token N is stale: \d{16} is current, held by nobody now \[PW001\]`,
		},
		"no lock": {
			func(t *testing.T, pool *pgxpool.Pool, _ fence.Token) {
				t.Helper()
				exec(t, pool, `delete from pawl.locks`)
			},
			`no such lock \[PW002\]`,
		},
		"expired": {
			func(t *testing.T, pool *pgxpool.Pool, tok fence.Token) { t.Helper(); expire(t, pool, tok) },
			`the lease with token N ended at ` + at + ` and nobody has taken it \[PW002\]`,
		},
		"forced": {
			func(t *testing.T, pool *pgxpool.Pool, tok fence.Token) { t.Helper(); exec(t, pool, forced, tok.Lock) },
			`the lease with token N ended at 2026-09-16 02:09:00.000 UTC, released by force, and nobody has taken it \[PW002\]`,
		},
		"a token out of nowhere": {
			func(t *testing.T, pool *pgxpool.Pool, _ fence.Token) {
				t.Helper()
				exec(t, pool, `update pawl.locks set token = 7`)
			},
			`token N was never issued: 7 is current \[PW002\]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.New(t)
			tok := acquire(t, pool, "job:x", "a", time.Minute)
			c.arrange(t, pool, tok)
			want := regexp.MustCompile(`^pawl: lock job:x: ` + strings.Replace(c.want, "token N", fmt.Sprintf("token %d", tok.Seq), 1) + `$`)
			for _, guard := range []string{`select pawl.guard($1, $2)`, `select pawl.guard_again($1, $2)`} {
				if guard != `select pawl.guard($1, $2)` && name == "expired" {
					continue // the one at COMMIT doesn't ask for the time
				}
				if got := raised(t, pool, guard, tok.Lock, tok.Seq).Message; !want.MatchString(got) {
					t.Errorf("%s raises\n%s\nwant\n%s", guard, got, want)
				}
			}
		})
	}
}

// psql hides the SQLSTATE, and it is what the runbook is ordered by.
func TestEveryRefusalEndsInItsSQLSTATE(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	ledger(t, pool)
	protect(t, pool, "ledger", "job:x", fence.Enforce)
	acquire(t, pool, "job:x", "a", time.Minute)
	exec(t, pool, `select pawl.fence('job:x', 5, 'seen')`)
	exec(t, pool, `update pawl.clock set incarnation = 1, system_identifier = 1`)
	for sql, code := range map[string]string{
		`select pawl.guard('job:x', 1)`:         fence.CodeStale,
		`select pawl.guard_again('never', 1)`:   fence.CodeNotHeld,
		`select pawl.fence('job:x', 4, 'seen')`: fence.CodeStale,
		`select pawl.once('job:x', 5, 'seen')`:  fence.CodeStale,
		`select pawl.fence('job:y', 6, 'seen')`: fence.CodeOtherLock,
		`select pawl.once('job:y', 6, 'seen')`:  fence.CodeOtherLock,
		`insert into ledger values (1, 1)`:      fence.CodeUnfenced,
		`truncate pawl.locks`:                   fence.CodeUnfenced,
		`select pawl.adopt()`:                   fence.CodeOtherDatabase,
		`select pawl.must(false, 'PW001')`:      fence.CodeStale,
	} {
		if pg := raised(t, pool, sql); pg.Code != code || !strings.HasSuffix(pg.Message, " ["+code+"]") {
			t.Errorf("%s raises %s %q, want it to end in [%s]", sql, pg.Code, pg.Message, code)
		}
	}
	// None is forgotten: the source has no other message.
	const bare = `select count(*) from pg_proc, regexp_matches(prosrc, 'raise exception ''((?:[^'']|'''')*)', 'g') m
		where pronamespace = 'pawl'::regnamespace and m[1] !~ '\[(PW\d{3}|22023|P0002|%)\]$'`
	if n := one[int](t, pool, bare); n != 0 {
		t.Errorf("%d messages don't end in their SQLSTATE", n)
	}
}

func TestARestoredCopySaysWhatToDo(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	exec(t, pool, `update pawl.clock set incarnation = 1, system_identifier = 1`)
	_, err := pool.Exec(t.Context(), `select pawl.adopt()`)
	err = fence.Wrap(err, fence.Token{})
	wantErr(t, err, fence.ErrOtherDatabase)
	if !strings.Contains(err.Error(), "if this copy may run what it owes, say so with: pawl adopt") {
		t.Errorf("%v: it doesn't say what to do", err)
	}
	if again := fence.Wrap(err, fence.Token{}); again.Error() != err.Error() {
		t.Errorf("wrapped twice it says %v", again)
	}
}
