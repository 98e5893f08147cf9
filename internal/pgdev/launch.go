package pgdev

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// initdb makes the data directory unless it is there. It works under another
// name first, so that an interrupted start leaves no half of one.
func (s *Server) initdb(ctx context.Context) error {
	if _, err := os.Stat(filepath.Join(s.DataDir(), "PG_VERSION")); err == nil {
		return nil
	}
	fresh := s.DataDir() + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return err
	}
	args := []string{"-D", fresh, "-U", superuser, "-A", "trust", "-E", "UTF8", "--locale=C"}
	if !s.opts.Durable {
		args = append(args, "--no-sync")
	}
	if err := s.run(ctx, "initdb", args...); err != nil {
		return err
	}
	return os.Rename(fresh, s.DataDir())
}

func (s *Server) run(ctx context.Context, name string, args ...string) error {
	cmd := s.command(name, args...)
	p, err := Spawn(cmd, syscall.SIGKILL)
	if err != nil {
		return err
	}
	select {
	case <-p.Done():
		return s.log.explain(p.Err())
	case <-ctx.Done():
		return errors.Join(context.Cause(ctx), p.Stop(10*time.Second, syscall.SIGTERM, syscall.SIGKILL))
	}
}

func (s *Server) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.bin, name), args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.home.dir, s.log, s.log
	s.cred.apply(cmd)
	return cmd
}

var errEndedEarly = errors.New("postgres ended before it answered")

// launch starts the postmaster. After a crash, of the server or of an owner
// before us, the old one may need a moment to be gone; until then Postgres
// refuses the directory.
func (s *Server) launch(ctx context.Context) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for attempt := 1; ; attempt++ {
		s.log.reset()
		err := s.launchOnce(ctx)
		if err == nil {
			return nil
		}
		if attempt >= s.attempts() {
			return fmt.Errorf("pgdev: start: %w", err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("pgdev: start: %w", errors.Join(err, context.Cause(ctx)))
		case <-tick.C:
		}
	}
}

// attempts says how often a start is worth it after what the last one said.
// Of version 14 a child may outlive its postmaster by twice the ten seconds
// that it waits for statistics.
func (s *Server) attempts() int {
	switch {
	case s.log.contains("still in use"):
		return 600
	case s.log.contains("postmaster.pid\" already exists"):
		return 100
	}
	return 1
}

func (s *Server) launchOnce(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := Spawn(s.command("postgres", s.args()...), syscall.SIGINT)
	if err != nil {
		return err
	}
	s.proc = p
	if err := s.awaitReady(ctx); err != nil {
		return errors.Join(err, s.halt(syscall.SIGINT))
	}
	return nil
}

func (s *Server) args() []string {
	set := map[string]string{
		"listen_addresses": "", "unix_socket_directories": s.home.socket, "unix_socket_permissions": "0700", "port": "5432",
		"max_connections": "200", "shared_buffers": "64MB", "logging_collector": "off",
	}
	if !s.opts.Durable {
		set["fsync"], set["synchronous_commit"], set["full_page_writes"] = "off", "off", "off"
	}
	if s.opts.Dir == "" {
		// Inside the directory, so that a killed server leaves none of it elsewhere.
		set["dynamic_shared_memory_type"] = "mmap"
	}
	for name, value := range s.opts.Settings {
		set[name] = value
	}
	args := []string{"-D", s.DataDir()}
	for name, value := range set {
		args = append(args, "--"+strings.ReplaceAll(name, "_", "-")+"="+value)
	}
	slices.Sort(args[2:])
	return args
}

// awaitReady reads postmaster.pid, whose line 8 says when the server answers.
func (s *Server) awaitReady(ctx context.Context) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !s.ready() {
		select {
		case <-s.proc.Done():
			return s.log.explain(cmp.Or(s.proc.Err(), errEndedEarly))
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
	return nil
}

func (s *Server) ready() bool {
	b, _ := os.ReadFile(filepath.Join(s.DataDir(), "postmaster.pid")) // Absent means: not yet.
	lines := strings.Split(string(b), "\n")
	return len(lines) >= 8 && strings.TrimSpace(lines[7]) == "ready" && lines[0] == strconv.Itoa(s.proc.Pid())
}

// halt ends the postmaster. Its first signal says which shutdown: SIGINT is
// the fast one, SIGQUIT the immediate one. The caller holds s.mu.
func (s *Server) halt(first syscall.Signal) error {
	if s.proc == nil {
		return nil
	}
	if err := s.proc.Stop(10*time.Second, first, syscall.SIGQUIT, syscall.SIGKILL); err != nil {
		return err
	}
	s.proc = nil
	return nil
}
