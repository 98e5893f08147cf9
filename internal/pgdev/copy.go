package pgdev

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/jackc/pgx/v5"
)

// Copy starts a second server on a base backup of s, in a directory of its
// own: what a backup is when it is restored. Later it falls behind s, and a
// Restart brings it up as it was. It has the options of s but Dir.
func (s *Server) Copy(ctx context.Context) (*Server, error) {
	return s.second(ctx, func(*Server, string) error { return nil })
}

// Standby is [Server.Copy], but the second server streams from s and is
// read-only until [Server.Promote].
func (s *Server) Standby(ctx context.Context) (*Server, error) {
	return s.second(ctx, func(c *Server, copied string) error { return s.follow(copied, c.cred) })
}

func (s *Server) second(ctx context.Context, adapt func(c *Server, copied string) error) (*Server, error) {
	o := s.opts
	o.BinDir, o.Dir = s.bin, ""
	return open(ctx, o, func(ctx context.Context, c *Server) error {
		fresh := c.DataDir() + ".new"
		if err := s.backup(ctx, fresh, c.cred); err != nil {
			return fmt.Errorf("pgdev: backup: %w", err)
		}
		if err := adapt(c, fresh); err != nil {
			return fmt.Errorf("pgdev: backup: %w", err)
		}
		return os.Rename(fresh, c.DataDir())
	})
}

// Promote makes a standby a server of its own and returns once it writes.
func (s *Server) Promote(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, s.URL())
	if err != nil {
		return fmt.Errorf("pgdev: promote: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	var done bool
	if err := conn.QueryRow(ctx, "select pg_promote()").Scan(&done); err != nil {
		return fmt.Errorf("pgdev: promote: %w", err)
	}
	if !done {
		return errors.New("pgdev: promote: the server is still a standby after a minute")
	}
	return nil
}

// StopImmediate ends the server at once, as a crash does, and keeps its
// directory: Restart recovers what had been written to the log.
func (s *Server) StopImmediate() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.halt(syscall.SIGQUIT); err != nil {
		return fmt.Errorf("pgdev: stop immediately: %w", err)
	}
	return nil
}
