package migrations

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
)

// OldestServer is the oldest major version of Postgres that pawl works on.
const OldestServer = 14

// OldServerError says that the server is older than [OldestServer].
type OldServerError struct {
	Version string // As the server gives it, such as 13.22 (Debian 13.22-1).
}

func (e *OldServerError) Error() string {
	return fmt.Sprintf("the server is PostgreSQL %s: pawl needs %d or newer", e.Version, OldestServer)
}

// CheckServer returns an *[OldServerError] for a version, as server_version
// gives it, that pawl doesn't work on. What it can't read it takes for new.
func CheckServer(version string) error {
	digits, _, _ := strings.Cut(version, ".")
	if major, err := strconv.Atoi(digits); err == nil && major < OldestServer {
		return &OldServerError{Version: version}
	}
	return nil
}

// checkServer asks no question: the server has said its version in greeting.
func checkServer(ctx context.Context, pool *pgxpool.Pool) error {
	return pool.AcquireFunc(ctx, func(c *pgxpool.Conn) error {
		return CheckServer(c.Conn().PgConn().ParameterStatus("server_version"))
	})
}
