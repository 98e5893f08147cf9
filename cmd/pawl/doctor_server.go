package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"pawl/migrations"
)

func checkServer(ctx context.Context, db *database) (finding, error) {
	var since time.Time
	var standby bool
	err := db.pool.QueryRow(ctx, `select pg_postmaster_start_time(), pg_is_in_recovery()`).Scan(&since, &standby)
	if err != nil {
		return finding{}, err
	}
	detail := fmt.Sprintf("PostgreSQL %s, up since %s", db.server, at(&since))
	if standby {
		return unless(true, bad, detail+", a standby: it takes no writes", "connect to the primary; with several hosts add target_session_attrs=read-write")
	}
	return okay("%s", detail)
}

func checkPooler(_ context.Context, db *database) (finding, error) {
	return unless(db.pooled, warn, map[bool]string{
		true:  "a pooler is in between: workers poll, since LISTEN doesn't get through one in transaction mode",
		false: "none",
	}[db.pooled], "connect to the server itself if work is to begin at once; programs with a pool of their own set default_query_exec_mode=exec")
}

func checkSchema(ctx context.Context, db *database) (finding, error) {
	err := migrations.Check(ctx, db.pool, migrations.Binary)
	var old *migrations.TooOldError
	var missing *migrations.NotMigratedError
	switch {
	case errors.As(err, &old):
		return unless(true, bad, fmt.Sprintf("the schema needs schema number %d, this pawl has %d", old.Needed, old.Binary), "install a newer pawl")
	case errors.As(err, &missing):
		return unless(true, bad, "missing: "+strings.Join(missing.Missing, ", "), "pawl migrate up")
	case err != nil:
		return finding{}, err
	}
	return okay("complete, schema number %d", migrations.Binary)
}

// Names are not resolved by the server: without USAGE on the schema that would fail.
const rightsSQL = `
select current_user, n.oid is not null, coalesce(has_schema_privilege(n.oid, 'USAGE'), false),
  has_database_privilege(current_database(), 'CREATE'),
  array(select c.relname || ': ' || r.what
          from pg_class c cross join (values ('SELECT'), ('INSERT'), ('UPDATE'), ('DELETE')) r (what)
         where c.relnamespace = n.oid and c.relname in ('locks', 'lanes', 'periods', 'runs', 'schedules', 'checkpoints', 'tenures', 'river_job')
           and not has_table_privilege(c.oid, r.what) order by 1),
  exists (select from pg_proc p where p.pronamespace = n.oid and p.proname = 'guard' and has_function_privilege(p.oid, 'EXECUTE'))
  from (values (1)) one left join pg_namespace n on n.nspname = 'pawl'`

const (
	grantWorker  = "grant pawl_worker to it, see: pawl migrate sql --roles"
	grantMonitor = "grant pg_monitor to it"
)

func checkRights(ctx context.Context, db *database) (finding, error) {
	var user string
	var there, use, create, guard bool
	var lacks []string
	if err := db.pool.QueryRow(ctx, rightsSQL).Scan(&user, &there, &use, &create, &lacks, &guard); err != nil {
		return finding{}, err
	}
	switch {
	case !there && create:
		return okay("%s may create the schema pawl", user)
	case !there:
		return unless(true, bad, user+" may not create the schema pawl, which isn't there", "migrate with an account that may: grant create on database …")
	case !use:
		return unless(true, bad, user+" may not use the schema pawl", grantWorker)
	case len(lacks) > 0 && guard:
		return unless(true, warn, fmt.Sprintf("%s may honour tokens, not run jobs: it lacks %s", user, lacks[0]), "for a worker: "+grantWorker)
	case len(lacks) > 0:
		return unless(true, bad, fmt.Sprintf("%s lacks %s", user, strings.Join(lacks, ", ")), grantWorker)
	}
	return okay("%s may run jobs", user)
}

func checkHome(ctx context.Context, db *database) (finding, error) {
	var foreign bool
	err := db.pool.QueryRow(ctx, `select system_identifier <> (select system_identifier from pg_control_system()) from pawl.clock`).Scan(&foreign)
	if err != nil {
		return finding{}, err
	}
	return unless(foreign, bad, map[bool]string{
		true: "this database was restored from another server: serve refuses it", false: "this database is at home on this server",
	}[foreign], "if this copy may run what it owes: pawl adopt")
}

// samples is how often the doctor asks for the time.
const samples = 15

func checkClock(ctx context.Context, db *database) (finding, error) {
	offset, best, _, err := askClock(ctx, db)
	if err != nil {
		return finding{}, err
	}
	const some, much = time.Second, 5 * time.Minute
	detail := fmt.Sprintf("the database's is %s ahead of this machine's", humanise(offset))
	const fix = "keep both synchronised, as with chrony; leases go by the database's clock, and nothing is planned while they differ by more than 5 minutes"
	if offset.Abs() > much {
		return unless(true, bad, detail, fix)
	}
	return unless(offset.Abs()-best/2 > some, warn, detail, fix) // it was read somewhere within the round trip
}

func checkRoundTrip(ctx context.Context, db *database) (finding, error) {
	_, _, trip, err := askClock(ctx, db)
	if err != nil {
		return finding{}, err
	}
	return unless(trip > 100*time.Millisecond, warn, fmt.Sprintf("%.2f ms, the median of %d", trip.Seconds()*1000, samples),
		"bring workers nearer to the database, or find out why it is slow")
}

// askClock takes the offset of the fastest of some round trips, how long that took, and their median.
func askClock(ctx context.Context, db *database) (offset, best, median time.Duration, err error) {
	conn, err := db.pool.Acquire(ctx)
	if err != nil {
		return 0, 0, 0, err
	}
	defer conn.Release()
	var trips []time.Duration
	best = time.Hour
	for range samples {
		var there time.Time
		sent := time.Now()
		if err := conn.QueryRow(ctx, `select clock_timestamp()`).Scan(&there); err != nil {
			return 0, 0, 0, err
		}
		trip := time.Since(sent)
		if trips = append(trips, trip); trip < best {
			best, offset = trip, there.Sub(sent.Add(trip/2))
		}
	}
	slices.Sort(trips)
	return offset, best, trips[len(trips)/2], nil
}
