package migrations

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Migration is one step, applied or not.
type Migration struct {
	Version   int64
	Name      string     // Such as 00001_pawl; only the number where this binary doesn't know it.
	AppliedAt *time.Time // UTC, by the database's clock; nil: not applied.
}

// Status lists the migrations that this binary knows, and those that a newer
// one has applied, by number. It changes nothing, on an empty database either.
func Status(ctx context.Context, pool *pgxpool.Pool) ([]Migration, error) {
	at, err := applied(ctx, pool)
	if err != nil {
		return nil, wrap("status", err)
	}
	list := known()
	for i := range list {
		if t, ok := at[list[i].Version]; ok {
			list[i].AppliedAt = &t
			delete(at, list[i].Version)
		}
	}
	for version, t := range at {
		list = append(list, Migration{Version: version, Name: fmt.Sprintf("%05d", version), AppliedAt: &t})
	}
	slices.SortFunc(list, func(a, b Migration) int { return int(a.Version - b.Version) })
	return list, nil
}

// pending names what is known and not applied.
func pending(ctx context.Context, pool *pgxpool.Pool) ([]string, error) {
	at, err := applied(ctx, pool)
	if err != nil {
		return nil, err
	}
	var missing []string
	for _, m := range known() {
		if _, ok := at[m.Version]; !ok {
			missing = append(missing, m.Name)
		}
	}
	return missing, nil
}

// goose writes the time of its session's zone, without the zone.
const appliedSQL = `
select version_id, tstamp at time zone current_setting('TimeZone')
  from ` + schema + `.` + versionTable + `
 where version_id > 0 and is_applied`

func applied(ctx context.Context, pool *pgxpool.Pool) (map[int64]time.Time, error) {
	var there bool
	if err := pool.QueryRow(ctx, `select to_regclass($1) is not null`, schema+"."+versionTable).Scan(&there); err != nil || !there {
		return nil, err
	}
	rows, err := pool.Query(ctx, appliedSQL)
	if err != nil {
		return nil, err
	}
	at := make(map[int64]time.Time)
	var version int64
	var t time.Time
	_, err = pgx.ForEachRow(rows, []any{&version, &t}, func() error {
		at[version] = t.UTC()
		return nil
	})
	return at, err
}
