package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

const indexesSQL = `
select coalesce(array_agg(i.indexrelid::regclass::text order by 1), '{}')
  from pg_index i join pg_class c on c.oid = i.indrelid
 where c.relnamespace = to_regnamespace('pawl') and not (i.indisvalid and i.indisready)`

func checkIndexes(ctx context.Context, db *database) (finding, error) {
	var broken []string
	if err := db.pool.QueryRow(ctx, indexesSQL).Scan(&broken); err != nil {
		return finding{}, err
	}
	if len(broken) == 0 {
		return okay("all of the schema pawl are valid")
	}
	return unless(true, bad, "not valid: "+strings.Join(broken, ", "), "reindex index concurrently "+broken[0])
}

const locksTableSQL = `
select (select count(*) from pg_index where indrelid = 'pawl.locks'::regclass),
       (select count(*) from pg_constraint where confrelid = 'pawl.locks'::regclass),
       coalesce(n_dead_tup, 0), coalesce(n_live_tup, 0), pg_total_relation_size('pawl.locks')
  from pg_stat_user_tables where relid = 'pawl.locks'::regclass`

func checkLocksTable(ctx context.Context, db *database) (finding, error) {
	var indexes, keys, dead, live, size int64
	if err := db.pool.QueryRow(ctx, locksTableSQL).Scan(&indexes, &keys, &dead, &live, &size); err != nil {
		return finding{}, err
	}
	detail := fmt.Sprintf("%s, %s dead, %.1f MB", plural(live, "row", "rows"), thousands(dead), float64(size)/1e6)
	if indexes > 1 || keys > 0 {
		return unless(true, warn, fmt.Sprintf("%s; somebody has added an index or a foreign key", detail),
			"drop them: a renewal has to stay a cheap update that nothing waits for")
	}
	return unless(dead > 20_000 && dead > 20*live, warn, detail, "vacuum pawl.locks, and end transactions that are open for long")
}

const partitionsSQL = `
select coalesce(array_agg(distinct i.inhrelid::regclass::text), '{}')
  from pg_trigger t join pg_inherits i on i.inhparent = t.tgrelid join pg_class c on c.oid = i.inhrelid and c.relkind in ('r', 'p')
 where t.tgname = 'pawl_protect' and not t.tgisinternal
   and not exists (select from pg_trigger o where o.tgrelid = i.inhrelid and o.tgname = 'pawl_protect')`

func checkPartitions(ctx context.Context, db *database) (finding, error) {
	var open []string
	if err := db.pool.QueryRow(ctx, partitionsSQL).Scan(&open); err != nil {
		return finding{}, err
	}
	if len(open) == 0 {
		return okay("none is open")
	}
	return unless(true, warn, "not protected, though their parents are: "+strings.Join(open, ", "), "call pawl protect for the parent again")
}

// reserved_connections came with Postgres 16.
const connectionsSQL = `
select current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
         - coalesce(current_setting('reserved_connections', true)::int, 0),
       (select coalesce(sum(numbackends), 0) from pg_stat_database),
       (select count(*) from pg_stat_activity where application_name like 'pawl%')`

// A replica with the default concurrency: its jobs' pool, pawl's own, the heartbeats', those of who looks at the page
// and who acts there, the listener.
const replicaConns = 12 + 10 + 2 + pageConns + actConns + 1

func checkConnections(ctx context.Context, db *database) (finding, error) {
	var most, used, ours int
	if err := db.pool.QueryRow(ctx, connectionsSQL).Scan(&most, &used, &ours); err != nil {
		return finding{}, err
	}
	detail := fmt.Sprintf("%d of %d in use, %d by pawl; a replica with --concurrency 10 takes up to %d", used, most, ours, replicaConns)
	return unless(most-used < replicaConns, warn, detail, "raise max_connections, lower --concurrency, or use a pooler")
}

const preparedSQL = `
select count(*), coalesce(min(gid), ''), coalesce(extract(epoch from clock_timestamp() - min(prepared))::float8, 0), current_setting('max_prepared_transactions')
  from pg_prepared_xacts where database = current_database()`

func checkPrepared(ctx context.Context, db *database) (finding, error) {
	var n int64
	var gid, most string
	var age float64
	if err := db.pool.QueryRow(ctx, preparedSQL).Scan(&n, &gid, &age, &most); err != nil {
		return finding{}, err
	}
	if n == 0 {
		return okay("none (max_prepared_transactions = %s)", most)
	}
	return unless(true, warn, fmt.Sprintf("%s, the oldest %s old, one is %q: if it holds a guard, nobody can take its lock over",
		plural(n, "transaction", "transactions"), seconds(age), gid), "commit prepared or rollback prepared them")
}

// Of other accounts' sessions one may see when their transactions began only with the rights of pg_read_all_stats.
const longSQL = `
select pg_has_role('pg_read_all_stats', 'USAGE'), count(*), coalesce(extract(epoch from clock_timestamp() - min(xact_start))::float8, 0), coalesce((array_agg(pid order by xact_start))[1], 0)
  from pg_stat_activity where datname = current_database() and backend_type = 'client backend' and backend_xmin is not null
   and xact_start < clock_timestamp() - interval '1 hour'`

func checkLongTransactions(ctx context.Context, db *database) (finding, error) {
	var n, pid int64
	var age float64
	var all bool
	if err := db.pool.QueryRow(ctx, longSQL).Scan(&all, &n, &age, &pid); err != nil {
		return finding{}, err
	}
	if n == 0 && !all {
		return unless(true, warn, "not known: this account doesn't see what other accounts' sessions do", grantMonitor)
	}
	if n == 0 {
		return okay("none is older than an hour")
	}
	return unless(true, warn, fmt.Sprintf("%s for more than an hour, the oldest %s (process %d): pawl's tables grow meanwhile",
		plural(n, "snapshot is open", "snapshots are open"), humanise(time.Duration(age*float64(time.Second))), pid), "end them")
}

const multixactSQL = `
select mxid_age(datminmxid), current_setting('autovacuum_multixact_freeze_max_age')::bigint from pg_database where datname = current_database()`

func checkMultixacts(ctx context.Context, db *database) (finding, error) {
	var age, most int64
	if err := db.pool.QueryRow(ctx, multixactSQL).Scan(&age, &most); err != nil {
		return finding{}, err
	}
	return unless(age > most/2, warn, fmt.Sprintf("the oldest is %s old, an aggressive vacuum begins at %s", thousands(age), thousands(most)),
		"many writers under one lock make one per transaction: vacuum pawl.locks, and see whether they need to share it")
}

func checkSynchronous(ctx context.Context, db *database) (finding, error) {
	var setting, fsync string
	err := db.pool.QueryRow(ctx, `select current_setting('synchronous_commit'), current_setting('fsync')`).Scan(&setting, &fsync)
	if err != nil {
		return finding{}, err
	}
	return unless(setting == "off" || fsync == "off", warn, "synchronous_commit = "+setting+", fsync = "+fsync,
		"turn them on: a crash of the server loses the last commits, tokens among them")
}

func checkTimestamps(ctx context.Context, db *database) (finding, error) {
	var setting string
	if err := db.pool.QueryRow(ctx, `select current_setting('track_commit_timestamp')`).Scan(&setting); err != nil {
		return finding{}, err
	}
	return okay("track_commit_timestamp = %s; pawl doesn't need it, it helps to prove afterwards in which order writes came", setting)
}
