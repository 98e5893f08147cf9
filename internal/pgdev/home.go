package pgdev

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

const (
	prefix    = "pawl-pg-"
	ownerFile = "owner.lock"
	// maxSocketDir leaves room for "/.s.PGSQL.5432" and the final zero in the
	// 104 bytes that macOS has for a socket's path; Linux has 108.
	maxSocketDir = 104 - 1 - len("/.s.PGSQL.5432")
)

// home is the place of one server on disk.
type home struct {
	dir       string // holds data and owner.lock
	socket    string // holds the socket: dir, or a directory of its own where dir is too long
	throwaway []string
	locks     []*os.File
}

func openHome(ctx context.Context, dir string, cred *credential) (*home, error) {
	reap(ctx)
	h := &home{}
	var err error
	if dir == "" {
		dir, err = h.temp(roomiest(), cred)
	} else if dir, err = filepath.Abs(dir); err == nil {
		err = h.keep(dir, cred)
	}
	if err == nil {
		h.dir, h.socket = dir, dir
		if len(dir) > maxSocketDir {
			h.socket, err = h.temp("/tmp", cred)
		}
	}
	if err != nil {
		return nil, errors.Join(err, h.close())
	}
	return h, nil
}

// temp makes a throw-away directory. Its lock gets its name only once it is
// held: a reaper that finds it unheld takes the directory for abandoned.
func (h *home) temp(base string, cred *credential) (string, error) {
	dir, err := os.MkdirTemp(base, prefix)
	if err != nil {
		return "", err
	}
	h.throwaway = append(h.throwaway, dir)
	file := filepath.Join(dir, ownerFile)
	if err := h.lock(file + ".new"); err != nil {
		return "", err
	}
	return dir, errors.Join(os.Rename(file+".new", file), cred.own(dir))
}

// keep opens a directory that outlives the server. It takes only an empty one
// or one of ours, since a root's process gives it away to another user.
func (h *home) keep(dir string, cred *credential) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := cred.reach(dir); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	file := filepath.Join(dir, ownerFile)
	if _, err := os.Stat(file); err != nil && len(entries) > 0 {
		return fmt.Errorf("directory %q is not empty and not one of pawl's: name an empty or a new one", dir)
	}
	return errors.Join(h.lock(file), cred.own(dir))
}

// lock marks the directory as ours. The kernel drops the mark when this
// process ends, however it ends.
func (h *home) lock(file string) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	h.locks = append(h.locks, f)
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fmt.Errorf("directory %q is in use by another server: stop that one or name another directory", filepath.Dir(file))
	}
	return nil
}

func (h *home) close() error {
	var errs []error
	for _, dir := range h.throwaway {
		errs = append(errs, os.RemoveAll(dir))
	}
	for _, f := range h.locks {
		errs = append(errs, f.Close())
	}
	h.throwaway, h.locks = nil, nil
	return errors.Join(errs...)
}
