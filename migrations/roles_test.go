package migrations_test

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/internal/pgtest"
	"pawl/migrations"
)

// byHand is a database made by the statements that SQL prints.
func byHand(t *testing.T) *pgxpool.Pool {
	t.Helper()
	var ddl strings.Builder
	if err := migrations.SQL(&ddl); err != nil {
		t.Fatal(err)
	}
	pool := empty(t)
	execSQL(t, pool, ddl.String())
	return pool
}

func TestADatabaseMadeByHandIsTheSame(t *testing.T) {
	t.Parallel()
	pool := byHand(t)
	if got := up(t, pool); len(got) != 0 {
		t.Errorf("Up still applied %v", got)
	}
	if err := migrations.Check(t.Context(), pool, migrations.Binary); err != nil {
		t.Error(err)
	}
	if want, got := objects(t, pgtest.New(t)), objects(t, pool); got != want {
		t.Errorf("by Up:\n%s\nby hand:\n%s", want, got)
	}
}

// objects describes every column, index, function and trigger of the schema.
func objects(t *testing.T, pool *pgxpool.Pool) string {
	t.Helper()
	return value[string](t, pool, `
select string_agg(o, e'\n' order by o) from (
  select format('%s.%s %s %s', table_name, column_name, data_type, column_default) from information_schema.columns where table_schema = 'pawl'
  union all select indexdef from pg_indexes where schemaname = 'pawl'
  union all select pg_get_functiondef(oid) from pg_proc where pronamespace = 'pawl'::regnamespace
  union all select pg_get_triggerdef(oid) from pg_trigger where not tgisinternal
  union all select format('goose %s', version_id) from pawl.goose_db_version
  union all select format('river %s %s', line, version) from pawl.river_migration) all_of_it (o)`)
}

func TestPsqlRunsThePrintedStatements(t *testing.T) {
	t.Parallel()
	var ddl strings.Builder
	if err := migrations.SQL(&ddl); err != nil {
		t.Fatal(err)
	}
	url := pgtest.Empty(t)
	psql := exec.CommandContext(t.Context(), "psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", url)
	psql.Stdin = strings.NewReader(ddl.String())
	if out, err := psql.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := migrations.Check(t.Context(), pgtest.Open(t, url), migrations.Binary); err != nil {
		t.Error(err)
	}
}

func TestTheRolesMayDoTheirWorkAndNothingElse(t *testing.T) {
	t.Parallel()
	pool := byHand(t)
	execSQL(t, pool, `create table public.mine (id int)`)
	const denied, refused = "42501", "PW" // Refused by the function itself: it ran.
	for _, c := range []struct{ role, sql, want string }{
		{"pawl_fencer", `select pawl.guard('x', 1)`, refused},
		{"pawl_fencer", `select pawl.guard_one('x', 1)`, refused},
		{"pawl_fencer", `select pawl.guard_again('x', 1)`, refused},
		{"pawl_fencer", `select pawl.fence('x', 1, 'account:1')`, ""},
		{"pawl_fencer", `select pawl.once('x', 1, 'account:2')`, ""},
		{"pawl_fencer", `select pawl.check('x', 1, 'account:1')`, ""},
		{"pawl_fencer", `select pawl.refuse('x', 1, 'account:1', 'update')`, ""},
		{"pawl_fencer", `select from pawl.locks`, denied},
		{"pawl_fencer", `select from pawl.locks for key share`, denied},
		{"pawl_fencer", `update pawl.locks set holder = 'me'`, denied},
		{"pawl_fencer", `insert into pawl.fences values ('account:1', 'x', 9)`, denied},
		{"pawl_fencer", `select pawl.adopt(true)`, denied},
		{"pawl_fencer", `select pawl.advance('{x}')`, denied},
		{"pawl_fencer", `select pawl.prune('0', 1)`, denied},
		{"pawl_fencer", `select from pawl.river_job`, denied},
		{"pawl_fencer", `select from pawl.keys`, denied},
		{"pawl_fencer", `select pawl.renew_as('x', 'a', 'k', 0, '1 min', '1 day')`, denied},
		{"pawl_fencer", `select pawl.release_as('x', 'a', 'k', 0)`, denied},
		{"pawl_fencer", `select pawl.request_release('x', 1, 'it hangs since noon', false, 'ann', 'Ann', true)`, denied},
		{"pawl_fencer", `select pawl.decide_release(1, 'bob', 'Bob', true, true)`, denied},
		{"pawl_fencer", `select pawl.set_single_operator(true, 'ann', 'Ann', true)`, denied},

		{"pawl_worker", `insert into pawl.locks (name, token, incarnation) values ('x', 1, 1)`, ""},
		{"pawl_worker", `select from pawl.locks for update`, ""},
		{"pawl_worker", `select pawl.adopt()`, ""},
		{"pawl_worker", `select pawl.prune('0', 1)`, ""},
		{"pawl_worker", `select pawl.advance('{x}')`, ""},
		{"pawl_worker", `insert into pawl.river_job (state, queue, kind, args, max_attempts) values ('available', 'q', 'k', '{}', 1)`, ""},
		{"pawl_worker", `insert into pawl.audit (actor, action) values ('a', 'b')`, ""},
		{"pawl_worker", `select from pawl.audit`, ""},
		{"pawl_worker", `update pawl.audit set actor = 'c'`, denied},
		{"pawl_worker", `delete from pawl.audit`, denied},
		{"pawl_worker", `truncate pawl.audit`, denied},
		{"pawl_worker", `truncate pawl.locks`, denied},
		{"pawl_worker", `drop table pawl.runs`, denied},
		{"pawl_worker", `create table pawl.more (id int)`, denied},
		{"pawl_worker", `select from pawl.schema_info`, ""},
		{"pawl_worker", `update pawl.schema_info set min_binary = 0`, denied},
		{"pawl_worker", `select from public.mine`, denied},
		{"pawl_worker", `insert into pawl.keys (id, name, secret, role, created_by) values ('a', 'a', '', 'reader', 'me')`, ""},
		{"pawl_worker", `update pawl.keys set revoked_at = clock_timestamp()`, ""},
		{"pawl_worker", `delete from pawl.keys`, denied},
		{"pawl_worker", `truncate pawl.keys`, denied},
		{"pawl_worker", `delete from pawl.idempotency`, ""},
		{"pawl_worker", `delete from pawl.waiters`, ""},
		{"pawl_worker", `delete from pawl.once_per`, ""},
		{"pawl_worker", `select pawl.renew_as('x', 'a', 'k', 0, '1 min', '1 day')`, ""},
		{"pawl_worker", `select pawl.release_as('x', 'a', 'k', 0)`, ""},
		{"pawl_worker", `select pawl.request_release('x', 1, 'it hangs since noon', false, 'ann', 'Ann', true)`, ""},
		{"pawl_worker", `select pawl.decide_release(1, 'bob', 'Bob', true, true)`, ""},
		{"pawl_worker", `select pawl.set_single_operator(true, 'ann', 'Ann', true)`, ""},
		{"pawl_worker", `select from pawl.approvals, pawl.settings`, ""},
		{"pawl_worker", `update pawl.approvals set state = 'approved'`, denied},
		{"pawl_worker", `delete from pawl.approvals`, denied},
		{"pawl_worker", `truncate pawl.approvals`, denied},
		{"pawl_worker", `insert into pawl.settings (name, value, changed_by) values ('single_operator', 'true', 'me')`, denied},
		{"pawl_worker", `update pawl.settings set value = 'true'`, denied},
		{"pawl_worker", `delete from pawl.settings`, denied},

		{"pawl_owner", `alter table pawl.runs add column note text`, ""},
		{"pawl_owner", `create table pawl.more (id int)`, ""},
		{"pawl_owner", `alter table pawl.river_job add column note text`, ""},
		{"pawl_owner", `create or replace function pawl.now_us() returns bigint language sql as 'select 1::bigint'`, ""},
		{"pawl_owner", `select from public.mine`, denied},
	} {
		if got := as(t, pool, c.role, c.sql); got != c.want && !(c.want == refused && strings.HasPrefix(got, refused)) {
			t.Errorf("%s: %s: SQLSTATE %q, want %q", c.role, c.sql, got, c.want)
		}
	}
}

// as runs sql as the role, takes it back and returns the SQLSTATE.
func as(t *testing.T, pool *pgxpool.Pool, role, sql string) string {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	if _, err := tx.Exec(t.Context(), "set local role "+pgx.Identifier{role}.Sanitize()); err != nil {
		t.Fatal(err)
	}
	_, err = tx.Exec(t.Context(), sql)
	var pgErr *pgconn.PgError
	if err != nil && !errors.As(err, &pgErr) {
		t.Fatal(err)
	}
	if pgErr == nil {
		return ""
	}
	return pgErr.Code
}

func TestWhoMayCreateRolesHandsItsSchemaOverWithoutBeingASuperuser(t *testing.T) {
	t.Parallel()
	url := pgtest.Own(t).DatabaseURL("shop") // the roles of the shared server are a superuser's
	admin := pgtest.Open(t, strings.Replace(url, "/shop?", "/postgres?", 1))
	execSQL(t, admin, `create role clerk login createrole`)
	execSQL(t, admin, `create database shop owner clerk`)
	clerk := pgtest.Open(t, strings.Replace(url, "postgres@", "clerk@", 1))
	up(t, clerk)
	for range 2 {
		execSQL(t, clerk, migrations.Roles())
	}
	execSQL(t, clerk, `alter table pawl.runs add column note text; create role worker; grant pawl_worker to worker`)
	const owner = `select current_user = 'clerk' and relowner = 'pawl_owner'::regrole from pg_class where oid = 'pawl.locks'::regclass`
	if !value[bool](t, clerk, owner) {
		t.Error("the tables are not the owner's")
	}
}

func TestAWorkerSeesWhatALaterMigrationAdds(t *testing.T) {
	t.Parallel()
	pool := byHand(t)
	execSQL(t, pool, `set role pawl_owner; create table pawl.more (id int generated always as identity);
create function pawl.f() returns int language sql as 'select 1'; reset role`)
	for sql, want := range map[string]string{`insert into pawl.more default values`: "", `select pawl.f()`: ""} {
		if got := as(t, pool, "pawl_worker", sql); got != want {
			t.Errorf("worker: %s: SQLSTATE %q", sql, got)
		}
	}
	if got := as(t, pool, "pawl_fencer", `select pawl.f()`); got != "42501" {
		t.Errorf("fencer: SQLSTATE %q", got)
	}
}

func TestAWorkerMayCallUpOnACurrentSchema(t *testing.T) {
	t.Parallel()
	pool := byHand(t)
	config := pool.Config()
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, `set role pawl_worker`)
		return err
	}
	worker, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer worker.Close()
	if got := up(t, worker); len(got) != 0 {
		t.Errorf("applied %v", got)
	}
	if err := migrations.Check(t.Context(), worker, migrations.Binary); err != nil {
		t.Error(err)
	}
}

func TestTheGrantsMayBeRunAgain(t *testing.T) {
	t.Parallel()
	pool := byHand(t)
	execSQL(t, pool, migrations.Roles())
}
