package fence

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Mode is what a protected table does with a statement that no current lease covers.
type Mode string

// The modes. Log records the statement in pawl.refusals and lets it pass: begin with it, and look. Enforce refuses it.
const (
	Log     Mode = "log"
	Enforce Mode = "enforce"
)

// Protection is one table that [Protect] has protected.
type Protection struct {
	Table string // with its schema, quoted where SQL needs it
	Lock  string // a lock's name, or a prefix of names that ends in *
	Mode  Mode
}

const (
	trigger      = "pawl_protect"
	ddlTries     = 50
	ddlWait      = 100 * time.Millisecond
	codeLockBusy = "55P03"
	// Statements queue behind waiting DDL, so it may only wait for a moment, and ask again.
	ddlBegin = "begin isolation level read committed; set local lock_timeout = '200ms'"
)

// Protect has the database demand a lease on lock from each statement that writes table (INSERT, UPDATE, DELETE,
// TRUNCATE, COPY), whatever program sends it: the transaction must have passed [Guard], [Do] or pawl.guard with a token
// that is still current. lock may end in *: any lock that begins so will do. table is a name as SQL reads it, with or
// without schema. Its partitions are protected too, one by one, since a partition doesn't fire its parent's trigger;
// for one that is made later call Protect again, which also changes lock and mode.
//
// It waits for the table at most 200 ms at a time, about 15 s in all. It fails on what is no table, and on pawl's own.
func Protect(ctx context.Context, db DB, table, lock string, mode Mode) error {
	if mode != Log && mode != Enforce {
		return fmt.Errorf("fence: protect %s: mode is %q; use %q or %q", table, mode, Log, Enforce)
	}
	if err := (Token{Lock: lock, Seq: 1}).check(); err != nil {
		return fmt.Errorf("fence: protect %s: lock %q must be 1 to %d bytes of UTF-8", table, lock, maxLock)
	}
	return eachTable(ctx, db, "protect", table, func(name string) string {
		return "create or replace trigger " + trigger + " before insert or update or delete or truncate on " + name +
			" for each statement execute function pawl.enforce(" + quote(lock) + ", " + quote(string(mode)) + ")"
	})
}

// Unprotect removes what [Protect] did to table and its partitions. Without protection it does nothing.
func Unprotect(ctx context.Context, db DB, table string) error {
	return eachTable(ctx, db, "unprotect", table, func(name string) string {
		return "drop trigger if exists " + trigger + " on " + name
	})
}

// eachTable runs one DDL statement per table, each in a transaction of its own: never two tables locked at once.
func eachTable(ctx context.Context, db DB, what, table string, ddl func(name string) string) error {
	names, err := family(ctx, db, table)
	if err != nil {
		return fmt.Errorf("fence: %s %s: %w", what, table, err)
	}
	for _, name := range names {
		if err := patiently(ctx, db, ddl(name)); err != nil {
			return fmt.Errorf("fence: %s %s: %w", what, name, err)
		}
	}
	return nil
}

const familySQL = `
with recursive family as (
  select to_regclass($1)::oid as oid
  union
  select i.inhrelid from pg_inherits i join family f on i.inhparent = f.oid
)
select quote_ident(n.nspname) || '.' || quote_ident(c.relname), c.relkind in ('r', 'p'), n.nspname = 'pawl'
  from family f join pg_class c on c.oid = f.oid join pg_namespace n on n.oid = c.relnamespace
 order by c.oid`

// family lists the table and, at any depth, its partitions and children.
func family(ctx context.Context, db DB, table string) (names []string, err error) {
	err = read(ctx, db, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, familySQL, table)
		if err != nil {
			return err
		}
		var name string
		var isTable, ours bool
		_, err = pgx.ForEachRow(rows, []any{&name, &isTable, &ours}, func() error {
			if ours {
				return fmt.Errorf("%s is pawl's own; give a table of yours", name)
			}
			if isTable { // a child may be a foreign table, which has no trigger for TRUNCATE everywhere
				names = append(names, name)
			}
			return nil
		})
		return err
	})
	if err == nil && len(names) == 0 {
		err = errors.New("there is no such table (a view or foreign table can't be protected); give its name as SQL reads it, with its schema")
	}
	return names, err
}

// patiently runs ddl, and again while the table is busy.
func patiently(ctx context.Context, db DB, ddl string) (err error) {
	for range ddlTries {
		err = pgx.BeginTxFunc(ctx, db, pgx.TxOptions{BeginQuery: ddlBegin}, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, ddl)
			return err
		})
		var pg *pgconn.PgError
		if !errors.As(err, &pg) || pg.Code != codeLockBusy {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(ddlWait):
		}
	}
	return fmt.Errorf("table stayed busy, end long transactions on it and try again: %w", err)
}

const protectedSQL = `
select quote_ident(n.nspname) || '.' || quote_ident(c.relname), t.tgargs
  from pg_trigger t join pg_class c on c.oid = t.tgrelid join pg_namespace n on n.oid = c.relnamespace
 where t.tgname = $1 and not t.tgisinternal
 order by 1`

// Protected lists the protected tables, partitions included, by name.
func Protected(ctx context.Context, db DB) (out []Protection, err error) {
	err = read(ctx, db, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, protectedSQL, trigger)
		if err != nil {
			return err
		}
		out, err = pgx.CollectRows(rows, protection)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("fence: list protected tables: %w", err)
	}
	return out, nil
}

// protection reads a trigger's arguments, each of which ends in NUL.
func protection(row pgx.CollectableRow) (p Protection, err error) {
	var args []byte
	if err := row.Scan(&p.Table, &args); err != nil {
		return p, err
	}
	parts := bytes.Split(args, []byte{0})
	if len(parts) < 2 {
		return p, fmt.Errorf("trigger %s on %s isn't pawl's", trigger, p.Table)
	}
	p.Lock, p.Mode = string(parts[0]), Mode(parts[1])
	return p, nil
}

func read(ctx context.Context, db DB, fn func(tx pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, db, pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadOnly}, fn)
}
