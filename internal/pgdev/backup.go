package pgdev

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// backup copies the data directory of a running server, as pg_basebackup does:
// that program comes with few packages and wants a server no newer than itself.
// What is read while it is written is mended from the log, which is read last.
func (s *Server) backup(ctx context.Context, to string, cred *credential) error {
	conn, err := pgx.Connect(ctx, s.URL())
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	label, err := hold(ctx, conn)
	if err != nil {
		return err
	}
	if err := copyTree(s.DataDir(), to, cred, transient); err != nil {
		return err
	}
	text, err := label()
	if err != nil {
		return err
	}
	wal := filepath.Join(to, "pg_wal")
	return errors.Join(
		copyTree(filepath.Join(s.DataDir(), "pg_wal"), wal, cred, nil),
		writeFile(filepath.Join(to, "backup_label"), text, cred))
}

const (
	versionSQL = `select current_setting('server_version_num')::int`
	// slotSQL keeps the log for as long as the connection lasts.
	slotSQL    = `select pg_create_physical_replication_slot('pgdev_' || pg_backend_pid(), true, true)::text`
	startSQL   = `select pg_backup_start('pgdev', true)::text`
	stopSQL    = `select labelfile from pg_backup_stop(false)`
	startSQL14 = `select pg_start_backup('pgdev', true, false)::text`
	stopSQL14  = `select labelfile from pg_stop_backup(false, false)`
)

// hold begins a backup; the function that it returns ends it, with the label
// that the copy has to carry.
func hold(ctx context.Context, conn *pgx.Conn) (end func() (string, error), err error) {
	var version int
	if err := conn.QueryRow(ctx, versionSQL).Scan(&version); err != nil {
		return nil, err
	}
	start, stop := startSQL, stopSQL
	if version < 150000 {
		start, stop = startSQL14, stopSQL14
	}
	var reply string
	for _, sql := range []string{slotSQL, start} {
		if err := conn.QueryRow(ctx, sql).Scan(&reply); err != nil {
			return nil, err
		}
	}
	return func() (label string, err error) {
		err = conn.QueryRow(ctx, stop).Scan(&label)
		return label, err
	}, nil
}

// transient is what the server makes anew when it starts, or must not find.
func transient(path string) bool {
	top, _, below := strings.Cut(path, "/")
	return slices.Contains([]string{"postmaster.pid", "postmaster.opts"}, path) ||
		below && slices.Contains([]string{"pg_wal", "pg_replslot", "pg_dynshmem", "pg_notify", "pg_serial", "pg_snapshots", "pg_stat_tmp", "pg_subtrans"}, top)
}

// copyTree leaves out what the server removes in the meantime.
func copyTree(from, to string, cred *credential, without func(path string) bool) error {
	root := os.DirFS(from)
	return fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		target := filepath.Join(to, path)
		switch {
		case errors.Is(err, fs.ErrNotExist) || err == nil && without != nil && without(path):
			return nil
		case err != nil:
			return err
		case d.IsDir():
			return errors.Join(os.MkdirAll(target, 0o700), cred.own(target))
		}
		f, err := root.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		return write(target, f, cred)
	})
}

func writeFile(name, text string, cred *credential) error {
	return write(name, strings.NewReader(text), cred)
}

func write(name string, from io.Reader, cred *credential) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	return errors.Join(err, f.Close(), cred.own(name))
}

// follow makes the copy a standby of s.
func (s *Server) follow(copied string, cred *credential) error {
	name := filepath.Join(copied, "postgresql.auto.conf")
	b, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("%s\nprimary_conninfo = 'host=%s port=5432 user=%s'\n", b, s.home.socket, superuser)
	return errors.Join(writeFile(name, text, cred), writeFile(filepath.Join(copied, "standby.signal"), "", cred))
}
