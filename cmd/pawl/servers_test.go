package main

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"pawl/internal/pgdev"
	"pawl/internal/pgtest"
)

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
	refused := withQuery(t, through, func(q url.Values) { q.Set("tcp_user_timeout", "1000") })
	if code, _, said := runPawl(t, "lock", "ls", "--database-url", refused); code != codeUsage || !strings.HasSuffix(said, "remove tcp_user_timeout from the URL\n") {
		t.Errorf("a parameter that the pooler doesn't know: exit code %d, %q", code, said)
	}
	for range 20 {
		if code, _, said := runPawl(t, "lock", "ls", "--database-url", through); code != codeOK || said != "no locks\n" {
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

// noTLS is the URL of a server without TLS that demands it.
func noTLS(t testing.TB) string {
	t.Helper()
	return "postgres://somebody:hunter2@" + answering(t, func(conn net.Conn) {
		defer func() { _ = conn.Close() }()
		b := pgproto3.NewBackend(conn, conn)
		if _, err := b.ReceiveStartupMessage(); err == nil { // an SSLRequest
			_, _ = conn.Write([]byte("N"))
		}
	}) + "/shop?sslmode=verify-full"
}

// refusing is the URL of a server that ends every start with an error.
func refusing(t testing.TB, code, message string) string {
	t.Helper()
	return "postgres://somebody:hunter2@" + answering(t, func(conn net.Conn) {
		defer func() { _ = conn.Close() }()
		b := pgproto3.NewBackend(conn, conn)
		if _, err := b.ReceiveStartupMessage(); err == nil {
			b.Send(&pgproto3.ErrorResponse{Severity: "FATAL", Code: code, Message: message})
			_ = b.Flush()
		}
	}) + "/shop?sslmode=disable"
}

// answering serves connections until the test ends, and returns its address.
func answering(t testing.TB, serve func(net.Conn)) string {
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
			go serve(conn)
		}
	}()
	return ln.Addr().String()
}

// The parameter is named and the fix is to remove it, whoever refuses it.
func TestARefusedParameterIsToBeRemoved(t *testing.T) {
	t.Parallel()
	for _, said := range [][2]string{
		{"08P01", "unsupported startup parameter: tcp_user_timeout"},
		{"08P01", "unsupported startup parameter in options: tcp_user_timeout"},
		{"42704", `unrecognized configuration parameter "tcp_user_timeout"`},
	} {
		code, out, got := runPawl(t, "lock", "ls", "--database-url", refusing(t, said[0], said[1]))
		if code != codeUsage || out != "" || strings.Count(got, "\n") != 1 || !strings.HasSuffix(got, "remove tcp_user_timeout from the URL\n") {
			t.Errorf("%s: exit code %d, %q", said[1], code, got)
		}
	}
}

func TestACertificateThatNobodyVouchesForIsSaidToBe(t *testing.T) {
	t.Parallel()
	web := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	addr := answering(t, func(conn net.Conn) {
		defer func() { _ = conn.Close() }()
		if _, err := pgproto3.NewBackend(conn, conn).ReceiveStartupMessage(); err != nil {
			return
		}
		if _, err := conn.Write([]byte("S")); err == nil {
			_ = tls.Server(conn, &tls.Config{Certificates: web.TLS.Certificates}).HandshakeContext(t.Context()) // it is refused
		}
	})
	code, _, said := runPawl(t, "lock", "ls", "--database-url", "postgres://u@"+addr+"/shop?sslmode=verify-full")
	if code != codeUsage || strings.Count(said, "\n") != 1 || !strings.Contains(said, "isn't trusted") || !strings.Contains(said, "sslrootcert=FILE") {
		t.Errorf("exit code %d, %q", code, said)
	}
}
