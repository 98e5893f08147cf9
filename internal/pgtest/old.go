package pgtest

import (
	"net"
	"os"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"pawl/internal/pgdev"
)

// TooOld returns the connection string of a PostgreSQL 13: a real one, without
// pawl's schema, where PAWL_PG_OLD_BIN names its binaries, else one that greets
// as it would and then says nothing. It ends with the test.
func TooOld(t testing.TB) string {
	t.Helper()
	if bin := os.Getenv("PAWL_PG_OLD_BIN"); bin != "" {
		s, err := pgdev.Start(t.Context(), pgdev.Options{BinDir: bin})
		return mine(t, s, err).URL()
	}
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go greetAsOld(conn)
		}
	}()
	return "postgres://somebody:hunter2@" + ln.Addr().String() + "/shop?sslmode=disable"
}

func greetAsOld(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	b := pgproto3.NewBackend(conn, conn)
	if _, err := b.ReceiveStartupMessage(); err != nil {
		return
	}
	b.Send(&pgproto3.AuthenticationOk{})
	b.Send(&pgproto3.ParameterStatus{Name: "server_version", Value: "13.22 (Debian 13.22-1)"})
	b.Send(&pgproto3.BackendKeyData{ProcessID: 1, SecretKey: []byte{0, 0, 0, 1}})
	b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	if b.Flush() != nil {
		return
	}
	_, _ = b.Receive() // Terminate
}
