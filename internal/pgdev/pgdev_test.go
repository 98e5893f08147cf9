package pgdev

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

func start(t *testing.T, o Options) *Server {
	t.Helper()
	s, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func query[T any](t *testing.T, url, sql string) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	var v T
	if err := conn.QueryRow(ctx, sql).Scan(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestServerAnswersOnItsSocketOnly(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Settings: map[string]string{"track_commit_timestamp": "on", "max_connections": "50"}})
	for setting, want := range map[string]string{
		"listen_addresses": "", "track_commit_timestamp": "on", "max_connections": "50", "fsync": "off",
	} {
		if got := query[string](t, s.URL(), "select current_setting('"+setting+"')"); got != want {
			t.Errorf("%s is %q, want %q", setting, got, want)
		}
	}
	if n := len(s.SocketDir() + "/.s.PGSQL.5432"); n > 103 {
		t.Errorf("the socket's path has %d bytes", n)
	}
}
