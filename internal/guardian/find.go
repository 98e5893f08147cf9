package guardian

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// The exit codes of env, nohup and the shells.
const (
	notExecutable = 126
	notFound      = 127
)

// Find looks a command up in PATH. Where it can't be started, code is 127 (there
// is none) or 126 (it isn't executable), else 0.
func Find(name string) (path string, code int, err error) {
	path, err = exec.LookPath(name)
	switch {
	case err == nil, errors.Is(err, exec.ErrDot): // PATH says so itself
		return path, 0, nil
	case !strings.Contains(name, "/"):
		for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
			if info, err := os.Stat(filepath.Join(dir, name)); err == nil && !info.IsDir() {
				return "", notExecutable, fs.ErrPermission
			}
		}
		return "", notFound, fs.ErrNotExist
	}
	return "", codeOf(err), innermost(err)
}

func codeOf(err error) int {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, exec.ErrNotFound) {
		return notFound
	}
	return notExecutable
}

// innermost leaves the names of Go's functions out.
func innermost(err error) error {
	var number syscall.Errno
	switch {
	case errors.As(err, &number):
		return number
	case errors.Is(err, fs.ErrPermission):
		return fs.ErrPermission
	}
	return err
}
