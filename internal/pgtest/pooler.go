package pgtest

import (
	"bytes"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"pawl/internal/pgdev"
)

// poolerConfig sends no statement to reset a server connection, as pgbouncer
// doesn't in transaction mode: what one client leaves, the next one finds.
const poolerConfig = `
[databases]
* = host=%s port=5432 user=postgres
[pgbouncer]
pool_mode = transaction
auth_type = any
listen_addr =
unix_socket_dir = %[1]s
listen_port = %[2]d
max_client_conn = 500
default_pool_size = 20
`

// Pooler starts a pgbouncer in transaction mode in front of a database of
// [Server] and returns the connection string that leads through it, with the
// exec mode that pgx needs there. It ends with the test.
func Pooler(t testing.TB, dsn string) string {
	t.Helper()
	c := start(t)
	port := 6432 + int(c.serial.Add(1))
	// The server's directory is reachable for the server's user and is gone after the tests.
	file := filepath.Join(c.server.SocketDir(), fmt.Sprintf("pooler-%d.ini", port))
	if err := os.WriteFile(file, fmt.Appendf(nil, poolerConfig, c.server.SocketDir(), port), 0o644); err != nil {
		t.Fatalf("pgtest: pooler: %v", err)
	}
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatalf("pgtest: pooler: %v", err)
	}
	q := u.Query()
	q.Set("port", strconv.Itoa(port))
	q.Set("default_query_exec_mode", "exec")
	u.RawQuery = q.Encode()
	startPooler(t, file, u.String())
	return u.String()
}

func startPooler(t testing.TB, config, through string) {
	t.Helper()
	var out bytes.Buffer
	cmd := exec.Command(pgbouncer(t), config)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := pgdev.Unprivileged(cmd); err != nil {
		t.Fatalf("pgtest: pooler: %v", err)
	}
	p, err := pgdev.Spawn(cmd, syscall.SIGKILL)
	if err != nil {
		t.Fatalf("pgtest: pooler: %v", err)
	}
	t.Cleanup(func() {
		if err := p.Stop(5*time.Second, syscall.SIGTERM, syscall.SIGKILL); err != nil {
			t.Errorf("pgtest: pooler: %v", err)
		}
	})
	Eventually(t, 20*time.Second, "pgbouncer answers", func() bool {
		select {
		case <-p.Done():
			t.Fatalf("pgtest: pooler: %v: %s", p.Err(), out.String())
		default:
		}
		conn, err := pgx.Connect(t.Context(), through)
		if err == nil {
			_ = conn.Close(t.Context())
		}
		return err == nil
	})
}

func pgbouncer(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"pgbouncer", "/usr/sbin/pgbouncer"} {
		if file, err := exec.LookPath(name); err == nil {
			return file
		}
	}
	t.Fatal("pgtest: no pgbouncer found: install it (Debian: apt-get install pgbouncer) or put it on the PATH")
	return ""
}
