package pgdev

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const superuser = "postgres"

// URL is the connection string of the database postgres, for the superuser.
func (s *Server) URL() string { return s.DatabaseURL("postgres") }

// DatabaseURL is the connection string of the named database, there or not.
func (s *Server) DatabaseURL(name string) string {
	q := url.Values{"host": {s.home.socket}, "port": {"5432"}, "sslmode": {"disable"}} // a user's PGPORT is another server's
	u := url.URL{Scheme: "postgres", User: url.User(superuser), Path: "/" + name, RawQuery: q.Encode()}
	return u.String()
}

// Database creates the named database unless it is there and returns its
// connection string.
func (s *Server) Database(ctx context.Context, name string) (string, error) {
	const duplicateDatabase = "42P04"
	conn, err := pgx.Connect(ctx, s.URL())
	if err != nil {
		return "", fmt.Errorf("pgdev: database %q: %w", name, err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	_, err = conn.Exec(ctx, "create database "+pgx.Identifier{name}.Sanitize())
	var pgErr *pgconn.PgError
	if err != nil && !(errors.As(err, &pgErr) && pgErr.Code == duplicateDatabase) {
		return "", fmt.Errorf("pgdev: database %q: %w", name, err)
	}
	return s.DatabaseURL(name), nil
}
