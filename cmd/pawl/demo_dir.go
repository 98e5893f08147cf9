package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// demoDir is where the demo's own Postgres lives.
func demoDir(getenv func(string) string, dir string) (string, error) {
	if dir == "" {
		return stateDir(getenv)
	}
	return filepath.Abs(dir)
}

// stateDir is where a user keeps what programs remember.
func stateDir(getenv func(string) string) (string, error) {
	if os.Geteuid() == 0 {
		return "/var/lib/pawl/demo", nil
	}
	if dir := getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "pawl", "demo"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", usage("no home directory is known (%v): give --data-dir", err)
	}
	return filepath.Join(home, ".local", "state", "pawl", "demo"), nil
}

func errDirInUse(dir string) error {
	return conflict("another demo runs in %s: end it first, or name another directory with --data-dir", dir)
}

func hasData(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "data", "PG_VERSION"))
	return err == nil
}

// ownerFile is what a server of the demo's marks its directory with; it holds a lock on it while it runs.
const ownerFile = "owner.lock"

// cleanDir removes the demo's own Postgres. It removes nothing that it doesn't know, and no directory in use.
func (c *cli) cleanDir(dir string) error {
	dir, err := demoDir(c.getenv, dir)
	if err != nil {
		return err
	}
	mark, err := os.OpenFile(filepath.Join(dir, ownerFile), os.O_RDWR|syscall.O_NOFOLLOW, 0)
	if errors.Is(err, os.ErrNotExist) {
		if _, err := os.Stat(filepath.Join(dir, "data")); err == nil {
			return conflict("%s wasn't made by the demo, which leaves it alone: name the demo's directory with --data-dir", dir)
		}
		return c.p.dropped("nothing to do: no demo has made anything in " + dir)
	}
	if err != nil {
		return fmt.Errorf("clean %s: %w", dir, err)
	}
	defer func() { _ = mark.Close() }()
	if err := syscall.Flock(int(mark.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return errDirInUse(dir)
	}
	for _, name := range []string{"data", "data.new", ownerFile} {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("clean %s: %w", dir, err)
		}
	}
	_ = os.Remove(dir) // It stays if there is something else in it.
	return c.p.dropped("what the demo had made in "+dir+" is gone", dir)
}

// dropped says what was removed.
func (p *printer) dropped(words string, names ...string) error {
	if p.json {
		return p.value(map[string]any{"dropped": append([]string{}, names...)})
	}
	p.line("%s", words)
	return nil
}
