package approvals

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Whoever writes SQL by hand meets the same rules: a row can't say what has not happened.
func TestRawSQLMeetsTheSameRules(t *testing.T) {
	t.Parallel()
	s := open(t)
	q := s.asked(t, ann)
	const (
		approve = `update pawl.approvals set state = 'approved', decided_at = clock_timestamp(), decided_by = 'x', decided_by_id = `
		insert  = `insert into pawl.approvals (action, lock, token, requested_by_id, requested_by, reason, requested_at, expires_at, state, decided_at, decided_by_id, self)
		  values ('force_release', 'x', 1, 'a', 'a', `
		now = `clock_timestamp(), clock_timestamp() + interval '15 min'`
	)
	for _, c := range []struct{ name, sql, want string }{
		{"without a release", approve + `'cli:bob@desk'`, "PW007"},
		{"by who asked", approve + `'cli:ann@desk'`, "PW007"},
		{"by who asked, as its own", approve + `'cli:ann@desk', self = true`, "PW007"},
		{"another token", `update pawl.approvals set token = 1`, "PW007"},
		{"another requester", `update pawl.approvals set requested_by_id = 'eve'`, "PW007"},
		{"more time", `update pawl.approvals set expires_at = expires_at + interval '1 min'`, "PW007"},
		{"declined without a note", `update pawl.approvals set state = 'declined', decided_at = clock_timestamp(), decided_by_id = 'b'`, "23514"},
		{"begins approved", insert + `'long enough reason', ` + now + `, 'approved', clock_timestamp(), 'b', false)`, "PW007"},
		{"begins later", insert + `'long enough reason', clock_timestamp() + interval '1 day', clock_timestamp() + interval '1 day 15 min', 'pending', null, null, false)`, "PW007"},
		{"short reason", insert + `e'too short \n\t', ` + now + `, 'pending', null, null, false)`, "23514"},
		{"two hours", insert + `'long enough reason', clock_timestamp(), clock_timestamp() + interval '2 h', 'pending', null, null, false)`, "23514"},
		{"the function, a short reason", `select pawl.request_release('x', ` + s.run(t, `select token::text from pawl.locks`) + `, 'short', false, 'a', 'a', true)`, "23514"},
		{"the function, two hours", `select pawl.request_release('x', ` + s.run(t, `select token::text from pawl.locks`) + `, 'long enough reason', false, 'a', 'a', true, '2 h')`, "23514"},
		{"the function, nobody", `select pawl.decide_release(1, ' ', 'a', true, true)`, "22023"},
	} {
		_, err := s.pool.Exec(t.Context(), c.sql)
		var pg *pgconn.PgError
		if !errors.As(err, &pg) || pg.Code != c.want {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
	if got := s.run(t, `select pawl.decide_release($1, 'cli:ann@desk', 'another name', true, true)`, q.ID); got != "same_person" {
		t.Errorf("the function, by who asked: %s", got)
	}
	s.held(t)

	// With a release, but by one person: the constraint.
	s.exec(t, `insert into pawl.tenures (lock, token, grant_id, ended_at, how) select name, token, grant_id, clock_timestamp(), 'forced' from pawl.locks`)
	_, err := s.pool.Exec(t.Context(), approve+`'cli:ann@desk'`)
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || pg.ConstraintName != "approvals_two_people" {
		t.Errorf("%v, want approvals_two_people", err)
	}
	if _, err := s.pool.Exec(t.Context(), approve+`'cli:ann@desk', self = true`); !errors.As(err, &pg) || pg.Code != "PW007" {
		t.Errorf("as a single operator's, which isn't set: %v, want PW007", err)
	}
	s.exec(t, approve+`'cli:bob@desk'`)
	if _, err := s.pool.Exec(t.Context(), `update pawl.approvals set state = 'declined', note = 'after all'`); !errors.As(err, &pg) || pg.Code != "PW007" {
		t.Errorf("a decision is changed: %v, want PW007", err)
	}
}

func TestAtAnotherIsolationLevelNothingIsDone(t *testing.T) {
	t.Parallel()
	s := open(t)
	q := s.asked(t, ann)
	tx, err := s.pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context())
	var outcome string
	if err := tx.QueryRow(t.Context(), `select pawl.decide_release($1, 'b', 'b', true, true)`, q.ID).Scan(&outcome); err != nil || outcome != "begin" {
		t.Errorf("%s, %v, want begin", outcome, err)
	}
	s.held(t)
}

func TestRawSQLCannotApproveAfterTheTimeNorForALeaseReleasedBefore(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(t *testing.T, s *scene){
		"after the time": func(t *testing.T, s *scene) { t.Helper(); s.late(t) },
		"released before": func(t *testing.T, s *scene) {
			t.Helper()
			s.exec(t, `update pawl.tenures set ended_at = ended_at - interval '2 h'`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			s.asked(t, ann)
			s.exec(t, `insert into pawl.tenures (lock, token, grant_id, ended_at, how) select name, token, grant_id, clock_timestamp(), 'forced' from pawl.locks`)
			prepare(t, s)
			_, err := s.pool.Exec(t.Context(), `update pawl.approvals set state = 'approved', decided_at = clock_timestamp(), decided_by = 'bob', decided_by_id = 'b'`)
			var pg *pgconn.PgError
			if !errors.As(err, &pg) || pg.Code != "PW007" {
				t.Errorf("%v, want PW007", err)
			}
		})
	}
}
