package migrations

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/pressly/goose/v3"
)

// Binary is the schema number that this binary is built for. It grows with
// every migration that the code relies on.
const Binary = 1

const (
	schema       = "pawl"
	versionTable = "goose_db_version"
	// riverNumber is the place of River's migrations among ours, and
	// riverVersion the version of River's that it goes to. A newer River needs
	// a new number, not a larger version here: this one has been applied.
	riverNumber  = 2
	riverVersion = 8
)

//go:embed sql/*.sql
var files embed.FS

// Up applies what is missing and returns the names of what it applied, none
// when the schema was current. It uses at most three connections of its own,
// made like the pool's, so that a busy pool can't stall it. A server that is
// too old is an *[OldServerError], and nothing is made there.
func Up(ctx context.Context, pool *pgxpool.Pool) (applied []string, err error) {
	if err := checkServer(ctx, pool); err != nil {
		return nil, wrap("up", err)
	}
	if missing, err := pending(ctx, pool); err != nil || len(missing) == 0 {
		return nil, wrap("up", err)
	}
	err = alone(ctx, pool, func(ctx context.Context, own *pgxpool.Pool) error {
		return givingWay(ctx, func() error {
			names, err := apply(ctx, own)
			applied = append(applied, names...)
			return err
		})
	})
	return applied, wrap("up", err)
}

func apply(ctx context.Context, own *pgxpool.Pool) ([]string, error) {
	if err := makeSchema(ctx, own); err != nil {
		return nil, err
	}
	p, closeDB, err := provider(own)
	if err != nil {
		return nil, err
	}
	defer closeDB()
	results, err := p.Up(ctx)
	var partial *goose.PartialError
	if errors.As(err, &partial) {
		results = partial.Applied
	}
	var names []string
	for _, r := range results {
		names = append(names, nameOf(r.Source.Version))
	}
	return names, err
}

// makeSchema asks first: "if not exists" wants the right to create schemas
// even when there is nothing to create.
func makeSchema(ctx context.Context, own *pgxpool.Pool) error {
	var there bool
	if err := own.QueryRow(ctx, `select to_regnamespace($1) is not null`, schema).Scan(&there); err != nil || there {
		return err
	}
	_, err := own.Exec(ctx, "create schema "+schema)
	return err
}

// Down drops the schema pawl with all that is in it, River's tables and the
// user's triggers on them included. It is for good; where nothing is there it
// does nothing. The database roles stay, they belong to the whole server.
func Down(ctx context.Context, pool *pgxpool.Pool) error {
	err := alone(ctx, pool, func(ctx context.Context, own *pgxpool.Pool) error {
		return givingWay(ctx, func() error {
			// Without arguments pgx sends this as one message, which is one transaction.
			_, err := own.Exec(ctx, "set local lock_timeout = "+lockTimeout+"; drop schema if exists "+schema+" cascade")
			return err
		})
	})
	return wrap("down", err)
}

// known lists our migrations by number.
func known() []Migration {
	entries, _ := files.ReadDir("sql") // It is embedded.
	list := []Migration{{Version: riverNumber, Name: fmt.Sprintf("%05d_river", riverNumber)}}
	for _, e := range entries {
		if number, err := goose.NumericComponent(e.Name()); err == nil {
			list = append(list, Migration{Version: number, Name: strings.TrimSuffix(path.Base(e.Name()), ".sql")})
		}
	}
	slices.SortFunc(list, func(a, b Migration) int { return int(a.Version - b.Version) })
	return list
}

func nameOf(version int64) string {
	for _, m := range known() {
		if m.Version == version {
			return m.Name
		}
	}
	return fmt.Sprintf("%05d", version)
}

func wrap(verb string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("migrations: %s: %w", verb, err)
}
