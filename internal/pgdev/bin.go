package pgdev

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// ErrNoBinaries means that initdb and postgres were not found.
var ErrNoBinaries = errors.New("pgdev: no initdb and postgres found: install PostgreSQL 14 or newer " +
	"(Debian: apt-get install postgresql, macOS: brew install postgresql) or set PAWL_PG_BIN to the directory that holds them")

// findBin returns the directory of the server binaries. A directory that
// somebody named is never replaced by another one.
func findBin(named string) (string, error) {
	if named != "" {
		return checkBin("BinDir", named)
	}
	if env := os.Getenv("PAWL_PG_BIN"); env != "" {
		return checkBin("PAWL_PG_BIN", env)
	}
	for _, dir := range append(onPath(), installed()...) {
		if hasServer(dir) {
			return dir, nil
		}
	}
	return "", ErrNoBinaries
}

func checkBin(name, dir string) (string, error) {
	if !hasServer(dir) {
		return "", fmt.Errorf("%w (%s is %q, which has no initdb and postgres)", ErrNoBinaries, name, dir)
	}
	return filepath.Abs(dir)
}

// onPath follows links, because initdb finds postgres beside its own file.
func onPath() []string {
	file, err := exec.LookPath("initdb")
	if err != nil {
		return nil
	}
	if file, err = filepath.EvalSymlinks(file); err != nil {
		return nil
	}
	return []string{filepath.Dir(file)}
}

// installed lists what Debian, Red Hat and Homebrew leave off the PATH,
// highest version first.
func installed() []string {
	var dirs []string
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin",
		"/opt/homebrew/opt/postgresql@*/bin", "/usr/local/opt/postgresql@*/bin",
	} {
		found, _ := filepath.Glob(pattern) // The patterns are well formed.
		dirs = append(dirs, found...)
	}
	slices.SortStableFunc(dirs, func(a, b string) int { return major(b) - major(a) })
	return dirs
}

func major(dir string) int {
	digits := strings.FieldsFunc(dir, func(r rune) bool { return r < '0' || r > '9' })
	if len(digits) == 0 {
		return 0
	}
	n, _ := strconv.Atoi(digits[len(digits)-1])
	return n
}

func hasServer(dir string) bool {
	return executable(filepath.Join(dir, "initdb")) && executable(filepath.Join(dir, "postgres"))
}

func executable(file string) bool {
	info, err := os.Stat(file)
	return err == nil && !info.IsDir() && info.Mode()&0o111 != 0
}
