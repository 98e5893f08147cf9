package main

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/cobra"

	"pawl/fence"
)

// protection is one protected table as it is printed.
type protection struct {
	Table string     `json:"table"`
	Lock  string     `json:"lock"`
	Mode  fence.Mode `json:"mode"`
}

func (c *cli) protect() *cobra.Command {
	var lock, mode string
	var remove bool
	cmd := &cobra.Command{
		Use: "protect TABLE --lock NAME", Short: "Have the database demand a lease from whoever writes a table",
		Long: `Have the database demand a current lease on a lock from whoever writes TABLE, and on its partitions.

Begin with --mode log, the default: it lets writes pass and records those that no lease covers as
refusals. --mode enforce refuses them. NAME may end in *: any lock that begins so will do. Without
TABLE it lists what is protected.`,
		Example: `  pawl protect shop.settlement --lock job:settlement
  pawl protect shop.settlement --lock job:settlement --mode enforce
  pawl protect shop.settlement --remove`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return exactly("TABLE")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			table := ""
			if len(args) > 0 {
				table = args[0]
			}
			if err := checkProtect(table, lock, mode, remove); err != nil {
				return err
			}
			db, err := c.openMigrated(cmd.Context(), 2)
			if err != nil {
				return err
			}
			defer db.pool.Close()
			if table == "" {
				return c.listProtected(cmd.Context(), db)
			}
			if err := knownTable(cmd.Context(), db, table); err != nil {
				return err
			}
			if remove {
				return c.unprotect(cmd.Context(), db, table)
			}
			if err := fence.Protect(cmd.Context(), db.pool, table, lock, fence.Mode(mode)); err != nil {
				return err
			}
			return c.sayProtected(protection{table, lock, fence.Mode(mode)})
		},
	}
	f := cmd.Flags()
	f.StringVar(&lock, "lock", "", "the lock that writers must hold; may end in *")
	f.StringVar(&mode, "mode", string(fence.Log), "log or enforce")
	f.BoolVar(&remove, "remove", false, "remove the protection")
	return cmd
}

func checkProtect(table, lock, mode string, remove bool) error {
	switch {
	case mode != string(fence.Log) && mode != string(fence.Enforce):
		return usage("--mode is %q: use log or enforce", mode)
	case table == "" && (lock != "" || remove):
		return usage("TABLE is missing; write: pawl protect TABLE --lock NAME")
	case remove && lock != "":
		return usage("--lock and --remove exclude each other: a protection is removed whatever its lock")
	case table != "" && !remove && lock == "":
		return usage("--lock is missing: name the lock that writers of %s must hold", table)
	}
	return nil
}

func (c *cli) sayProtected(x protection) error {
	if c.p.json {
		return c.p.value(x)
	}
	if x.Mode == fence.Log {
		c.p.line("%s: writes without a lease on %s are recorded and pass; see what comes, then use --mode enforce", clean(x.Table), clean(x.Lock))
	} else {
		c.p.line("%s: writes without a lease on %s are refused", clean(x.Table), clean(x.Lock))
	}
	return nil
}

const knownTableSQL = `select to_regclass($1) is not null`

// knownTable refuses a table that isn't there.
func knownTable(ctx context.Context, db *database, table string) error {
	var known bool
	err := db.pool.QueryRow(ctx, knownTableSQL, table).Scan(&known)
	var pg *pgconn.PgError
	switch {
	case errors.As(err, &pg) && pg.Code == "42601", errors.As(err, &pg) && pg.Code == "42602":
		return usage("%q is no table's name: write it as SQL reads it, as in shop.settlement", table)
	case err == nil && !known:
		return usage(`there is no table %q; write its schema too, and list them with: psql -c '\dt *.*'`, table)
	}
	return err
}

const unprotectedSQL = `
select exists (select from pg_trigger where tgrelid = to_regclass($1) and tgname = 'pawl_protect' and not tgisinternal)`

func (c *cli) unprotect(ctx context.Context, db *database, table string) error {
	var was bool
	if err := db.pool.QueryRow(ctx, unprotectedSQL, table).Scan(&was); err != nil {
		return err
	}
	if err := fence.Unprotect(ctx, db.pool, table); err != nil { // also where it was not: a partition may be
		return err
	}
	if c.p.json {
		return c.p.value(map[string]any{"table": table, "mode": "none", "removed": was})
	}
	c.p.line("%s %s", clean(table), map[bool]string{true: "is no longer protected", false: "was not protected"}[was])
	return nil
}

func (c *cli) listProtected(ctx context.Context, db *database) error {
	found, err := fence.Protected(ctx, db.pool)
	if err != nil {
		return err
	}
	var rows []protection
	for _, f := range found {
		rows = append(rows, protection(f))
	}
	return list(c.p, rows, "no table is protected", []string{"TABLE", "LOCK", "MODE"}, func(x protection) []string {
		return []string{x.Table, x.Lock, string(x.Mode)}
	})
}
