package pgdev

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
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

func execSQL(t *testing.T, url, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
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

// kept is a directory that the server's user can reach, which t.TempDir isn't.
func kept(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "pgdev-test-") //nolint:usetesting // t.TempDir is closed to other users.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestRestartKeepsDataAndURL(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Dir: filepath.Join(kept(t), strings.Repeat("long", 30)), Durable: true})
	if n := len(s.SocketDir() + "/.s.PGSQL.5432"); n > 103 {
		t.Fatalf("the socket's path has %d bytes", n)
	}
	url, err := s.Database(t.Context(), "kept")
	if err != nil {
		t.Fatal(err)
	}
	execSQL(t, url, "create table t as select 7 as v")
	for _, how := range []string{"stopped", "killed"} {
		pid := s.Pid()
		if how == "killed" {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Restart(t.Context()); err != nil {
			t.Fatalf("%s: %v", how, err)
		}
		if s.Pid() == pid {
			t.Errorf("%s: the server is the same", how)
		}
		if v := query[int](t, url, "select v from t"); v != 7 {
			t.Errorf("%s: read %d, want 7", how, v)
		}
	}
	if again, err := s.Database(t.Context(), "kept"); err != nil || again != url {
		t.Errorf("Database again: %q, %v", again, err)
	}
}

func TestStopTwiceIsNoError(t *testing.T) {
	t.Parallel()
	s := start(t, Options{})
	for range 2 {
		if err := s.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	if !gone(s.home.dir) || s.Pid() != 0 {
		t.Errorf("left over: %s, process %d", s.home.dir, s.Pid())
	}
}

func TestAForeignDirectoryIsRefused(t *testing.T) {
	t.Parallel()
	dir := kept(t)
	if err := os.WriteFile(filepath.Join(dir, "thesis.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Start(t.Context(), Options{Dir: dir})
	if err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("start says %v", err)
	}
}

func TestADirectoryOutOfReachIsRefusedByName(t *testing.T) {
	t.Parallel()
	dir := kept(t)
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	err := (&credential{Uid: 65534, Gid: 65534}).reach(filepath.Join(dir, "data"))
	if err == nil || !strings.Contains(err.Error(), strconv.Quote(dir)) {
		t.Errorf("reach says %v", err)
	}
}

func TestMissingBinariesAreNamed(t *testing.T) {
	t.Parallel()
	_, err := Start(t.Context(), Options{BinDir: t.TempDir()})
	if !errors.Is(err, ErrNoBinaries) || !strings.Contains(err.Error(), "PAWL_PG_BIN") {
		t.Errorf("start says %v", err)
	}
}

func TestBinariesOutOfReachAreRefusedByName(t *testing.T) {
	t.Parallel()
	home := kept(t)
	bin := filepath.Join(home, "bin")
	if err := errors.Join(os.Mkdir(bin, 0o755), os.Chmod(home, 0o700)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"initdb", "postgres"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/false\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	_, err := Start(t.Context(), Options{BinDir: bin})
	if err == nil || os.Geteuid() == 0 && !strings.Contains(err.Error(), strconv.Quote(home)) {
		t.Errorf("start says %v", err)
	}
}

func TestABadSettingIsExplainedByTheServer(t *testing.T) {
	t.Parallel()
	_, err := Start(t.Context(), Options{Settings: map[string]string{"no_such_setting": "1"}})
	if err == nil || !strings.Contains(err.Error(), "no_such_setting") {
		t.Errorf("start says %v", err)
	}
}

func TestTheServersLinesAreLogged(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	s := start(t, Options{Log: slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "database system is ready") {
		t.Errorf("logged: %s", out.String())
	}
}

func gone(dir string) bool {
	_, err := os.Lstat(dir)
	return errors.Is(err, os.ErrNotExist)
}
