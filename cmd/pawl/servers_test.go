package main

import (
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"pawl/internal/pgdev"
	"pawl/internal/pgtest"
)

// oldServer answers as a PostgreSQL 13 would, and returns its URL. There is none to be had.
func oldServer(t testing.TB) string {
	t.Helper()
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
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

func TestWrongPasswordIsOneSentenceWithoutThePassword(t *testing.T) {
	t.Parallel()
	hba := filepath.Join(openDir(t), "hba")
	if err := os.WriteFile(hba, []byte("local all clerk scram-sha-256\nlocal all all trust\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	server, err := pgdev.Start(t.Context(), pgdev.Options{Settings: map[string]string{"hba_file": hba}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	pool := pgtest.Open(t, server.URL())
	if _, err := pool.Exec(t.Context(), "create role clerk login password 'right'"); err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword("clerk", "hunter2")
	code, out, said := runPawl(t, "lock", "ls", "--database-url", u.String())
	if code != codeUsage || out != "" || strings.Count(said, "\n") != 1 || !strings.Contains(said, `refuses the password of user "clerk"`) {
		t.Errorf("exit code %d, %q, %q", code, out, said)
	}
	if strings.Contains(said, "hunter2") {
		t.Errorf("the password is in %q", said)
	}
}

func TestPoolerWorksAndOneLineSaysThatItPolls(t *testing.T) {
	t.Parallel()
	through := withQuery(t, pgtest.Pooler(t, pgtest.URL(t)), func(q url.Values) {
		q.Del("default_query_exec_mode") // pawl sets it by itself
	})
	code, out, said := runPawl(t, "doctor", "--json", "--database-url", through)
	if code != codeOK || !strings.Contains(out, "workers poll") {
		t.Errorf("doctor: exit code %d, %q, %q", code, out, said)
	}
	for range 20 {
		if code, _, said := runPawl(t, "lock", "ls", "--database-url", through); code != codeConflict || said != "no locks\n" {
			t.Fatalf("lock ls: exit code %d, %q", code, said)
		}
	}
}

// withQuery changes the parameters of a connection string.
func withQuery(t *testing.T, dsn string, change func(url.Values)) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	change(q)
	u.RawQuery = q.Encode()
	return u.String()
}

// runPawl runs a command in this process.
func runPawl(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err strings.Builder
	code = run(t.Context(), args, func(string) string { return "" }, strings.NewReader(""), &out, &err)
	return code, out.String(), err.String()
}
