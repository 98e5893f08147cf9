package lockrepo

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// Reason says in words why the database gave no answer, as in "The database …":
// for pages that people read. It names no host, no account and no statement;
// err itself belongs into the log.
func Reason(err error) string {
	const away = "can't be reached"
	var pg *pgconn.PgError
	var network *net.OpError
	switch {
	case errors.As(err, &pg):
		return reasonOf(pg.Code)
	case errors.As(err, new(*pgconn.ConnectError)):
		return away // also when that took too long
	case errors.Is(err, context.DeadlineExceeded), pgconn.Timeout(err):
		return "didn't answer in time"
	case errors.As(err, &network), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return away
	}
	return "gave no answer"
}

// reasonOf is the reason of a server that did speak.
func reasonOf(code string) string {
	switch {
	case code == "57014": // its own time limit for a statement
		return "didn't answer in time"
	case strings.HasPrefix(code, "57P"), strings.HasPrefix(code, "08"):
		return "is shutting down or starting, and can't be reached"
	case code == "53300":
		return "has no connection left"
	case strings.HasPrefix(code, "28"), code == "3D000":
		return "doesn't let this program in"
	case code == "42501":
		return "doesn't allow this question to this program's role"
	case code == "42P01", code == "42703", code == "3F000":
		return "lacks what this version of pawl needs: run pawl migrate up"
	}
	return "refused this question"
}
