package pgdev

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"syscall"
)

// Options says which server to start.
type Options struct {
	// BinDir holds initdb and postgres. Empty: PAWL_PG_BIN, PATH, then the
	// usual places of distributions, highest version first.
	BinDir string
	// Dir keeps the data. It is created if absent and survives Stop. Empty: a
	// throw-away directory, in memory where there is room, gone after Stop.
	Dir string
	// Durable writes through to the disk as a production server does. Without
	// it a crash of the machine, though not of the server, may lose the data.
	Durable bool
	// Settings are further server settings, such as track_commit_timestamp.
	// They override the defaults.
	Settings map[string]string
	// Log gets the server's own log lines at level Debug. Nil discards them.
	Log *slog.Logger
}

// Server is a running Postgres. Its methods may be called concurrently.
type Server struct {
	home *home
	bin  string
	opts Options
	cred *credential
	dog  *watchdog
	log  *tail

	mu   sync.Mutex
	proc *Process
}

// Start brings a server up and returns once it answers. The context bounds
// only the start: the server runs until Stop, or until this process ends. It
// returns ErrNoBinaries when Postgres isn't installed.
func Start(ctx context.Context, o Options) (*Server, error) {
	return open(ctx, o, func(ctx context.Context, s *Server) error {
		if err := s.initdb(ctx); err != nil {
			return fmt.Errorf("pgdev: initdb: %w", err)
		}
		return nil
	})
}

// open brings up a server whose data directory is made by fill.
func open(ctx context.Context, o Options, fill func(context.Context, *Server) error) (*Server, error) {
	bin, err := findBin(o.BinDir)
	if err != nil {
		return nil, err
	}
	cred, err := unprivileged()
	if err != nil {
		return nil, err
	}
	if err := cred.reach(bin); err != nil {
		return nil, fmt.Errorf("pgdev: binaries: %w", err)
	}
	h, err := openHome(ctx, o.Dir, cred)
	if err != nil {
		return nil, fmt.Errorf("pgdev: %w", err)
	}
	s := &Server{home: h, bin: bin, opts: o, cred: cred, log: newTail(o.Log)}
	if err := s.start(ctx, fill); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

func (s *Server) start(ctx context.Context, fill func(context.Context, *Server) error) (err error) {
	if s.dog, err = startWatchdog(s.home, s.cred); err != nil {
		return fmt.Errorf("pgdev: watchdog: %w", err)
	}
	if err = fill(ctx, s); err != nil {
		return err
	}
	return s.launch(ctx)
}

// Stop ends the server, first by fast shutdown, then by immediate shutdown,
// then by force, and removes a throw-away directory. A second Stop does
// nothing.
func (s *Server) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.halt(syscall.SIGINT)
	if err == nil {
		err = s.home.close()
	}
	s.dog.dismiss()
	if err != nil {
		return fmt.Errorf("pgdev: stop: %w", err)
	}
	return nil
}

// Restart stops the server, or takes note that it has crashed, and starts it
// again on the same data and the same URL.
func (s *Server) Restart(ctx context.Context) error {
	s.mu.Lock()
	err := s.halt(syscall.SIGINT)
	s.mu.Unlock()
	if err != nil {
		return fmt.Errorf("pgdev: restart: %w", err)
	}
	return s.launch(ctx)
}

// Pid is the process id of the postmaster; 0 when it isn't running.
func (s *Server) Pid() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		return 0
	}
	return s.proc.Pid()
}

// DataDir is the server's data directory.
func (s *Server) DataDir() string { return filepath.Join(s.home.dir, "data") }

// SocketDir is the directory of the server's unix socket.
func (s *Server) SocketDir() string { return s.home.socket }
