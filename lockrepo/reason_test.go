package lockrepo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/internal/pgtest"
)

func TestTheReasonIsToldInWords(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	// A port that nobody listens on any more.
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	gone, err := pgxpool.New(t.Context(), fmt.Sprintf("postgres://somebody@%s/shop?connect_timeout=5", ln.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	defer gone.Close()
	_, refused := newRepo(t, gone, "a").Show(t.Context(), "x")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, slow := pool.Exec(ctx, "select pg_sleep(30)")
	_, limited := pool.Exec(t.Context(), "set statement_timeout = 10; select pg_sleep(30)")
	_, missing := pool.Exec(t.Context(), "select from pawl.nothing")
	_, ended := pool.Exec(t.Context(), "select pg_terminate_backend(pg_backend_pid())")
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"refused", refused, "can't be reached"},
		{"slow", slow, "didn't answer in time"},
		{"slow by the server's clock", limited, "didn't answer in time"},
		{"not migrated", missing, "lacks what this version of pawl needs: run pawl migrate up"},
		{"terminated", ended, "is shutting down or starting, and can't be reached"},
		{"wrong password", &pgconn.PgError{Code: "28P01"}, "doesn't let this program in"},
		{"full", &pgconn.PgError{Code: "53300"}, "has no connection left"},
		{"other", errors.New("something at 10.1.2.3"), "gave no answer"},
	} {
		if got := Reason(c.err); got != c.want {
			t.Errorf("%s: %v is told as %q, want %q", c.name, c.err, got, c.want)
		}
	}
}
