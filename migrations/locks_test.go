package migrations_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"pawl/internal/pgtest"
	"pawl/migrations"
)

// Vacuum, where it cuts off a table's empty end, takes the whole table for itself: all renewals would wait.
func TestVacuumNeverTakesTheLocksForItself(t *testing.T) {
	t.Parallel()
	options := value[[]string](t, pgtest.New(t), `select reloptions from pg_class where oid = 'pawl.locks'::regclass`)
	if !slices.Contains(options, "vacuum_truncate=off") {
		t.Errorf("pawl.locks has %v", options)
	}
}

// changeWaits: in this database, since others of the server are copies of one template, in which the table has the same number.
const changeWaits = `
select exists (select from pg_locks where relation = 'pawl.locks'::regclass and mode = 'AccessExclusiveLock' and not granted
                  and database = (select oid from pg_database where datname = current_database()))`

// A guarded transaction is open for as long as its holder likes. A change of the table that queues behind it holds up
// whoever comes after the change; it may do so for 200 ms, and then it has to let them pass.
func TestRenewalsGoOnWhileAChangeOfTheLocksWaitsForAGuard(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	execSQL(t, pool, `insert into pawl.locks (name, token, incarnation, grant_id, expires_at, ttl)
	  select n, 1, 1, gen_random_uuid(), clock_timestamp() + interval '1 min', '1 min' from unnest(array['guarded', 'renewed']) n`)
	guarded, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := guarded.Exec(t.Context(), `select pawl.guard('guarded', 1)`); err != nil {
		t.Fatal(err)
	}
	down := make(chan error, 1)
	go func() { down <- migrations.Down(context.WithoutCancel(t.Context()), pool) }()
	pgtest.Eventually(t, 10*time.Second, "the change waits for the guard", func() bool { return value[bool](t, pool, changeWaits) })
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if _, err := pool.Exec(ctx, `update pawl.locks set expires_at = clock_timestamp() + ttl where name = 'renewed'`); err != nil {
		t.Errorf("a renewal of another lease: %v", err)
	}
	if err := guarded.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-down; err != nil {
		t.Error(err)
	}
}

// An index of text in a locale of the operating system's is broken by an upgrade of it: a lock would be found twice.
func TestIndexedNamesAreComparedByteByByte(t *testing.T) {
	t.Parallel()
	const sql = `select coalesce(array_agg(i.indexrelid::regclass || '.' || a.attname), '{}')
	  from pg_index i join pg_class c on c.oid = i.indrelid join pg_attribute a on a.attrelid = i.indexrelid
	 where c.relnamespace = 'pawl'::regnamespace and c.relname not like 'river%' and c.relname not like 'goose%'
	   and a.atttypid = 'text'::regtype and a.attcollation <> '"C"'::regcollation`
	if got := value[[]string](t, pgtest.New(t), sql); len(got) > 0 {
		t.Errorf("indexes of text that is not collate \"C\": %v", got)
	}
}
