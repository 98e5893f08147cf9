package approvals

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/internal/pgtest"
	"pawl/lockrepo"
	"pawl/lockrepo/keys"
)

var (
	ann   = Person{ID: "cli:ann@desk", Name: "ann", Approver: true}
	bob   = Person{ID: "cli:bob@desk", Name: "bob", Approver: true}
	guest = Person{ID: "cli:guest@desk", Name: "guest"}
)

const why = "worker hangs, restarted by hand"

// scene is a lease on x, and a store.
type scene struct {
	pool  *pgxpool.Pool
	store *Store
	repo  *lockrepo.Repo
	lease lockrepo.Lease
}

func open(t *testing.T) *scene { t.Helper(); return on(t, pgtest.New(t)) }

func on(t *testing.T, pool *pgxpool.Pool) *scene {
	t.Helper()
	repo, err := lockrepo.New(lockrepo.Config{Pool: pool, Holder: "worker-1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(repo.Close)
	l, err := repo.Acquire(t.Context(), "x", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return &scene{pool, New(pool, nil), repo, l}
}

func (s *scene) release(by Person) Release {
	return Release{Lock: "x", Token: s.lease.Token.Seq, Reason: why, By: by}
}

func (s *scene) asked(t *testing.T, by Person) Request {
	t.Helper()
	q, err := s.store.RequestRelease(t.Context(), s.release(by))
	if err != nil || q.State != Pending {
		t.Fatalf("%+v, %v", q, err)
	}
	return q
}

func (s *scene) key(t *testing.T, k keys.Key) Person {
	t.Helper()
	k.CreatedBy = "ops"
	_, made, err := keys.New(s.pool).Create(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	return Person{ID: made.ID, Name: made.Name, Approver: made.Approver}
}

func (s *scene) run(t *testing.T, sql string, args ...any) string {
	t.Helper()
	var v string
	if err := s.pool.QueryRow(t.Context(), sql, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

func (s *scene) exec(t *testing.T, sql string) {
	t.Helper()
	if _, err := s.pool.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// late moves every request's time into the past, past the trigger that keeps it.
func (s *scene) late(t *testing.T) {
	t.Helper()
	s.exec(t, `alter table pawl.approvals disable trigger kept`)
	s.exec(t, `update pawl.approvals set requested_at = requested_at - interval '1 h', expires_at = expires_at - interval '1 h'`)
	s.exec(t, `alter table pawl.approvals enable trigger kept`)
}

// held says whether the lease is as it was, and nothing of it is in the history.
func (s *scene) held(t *testing.T) {
	t.Helper()
	const sql = `select (select grant_id is not null from pawl.locks where name = 'x')::text || (select count(*) from pawl.tenures)
	  || (select count(*) from pawl.audit where action = 'force_release')`
	if got := s.run(t, sql); got != "true00" {
		t.Errorf("held, tenures, releases in the audit: %s, want the lease as it was", got)
	}
}
