package pgdev

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// credential is the user that children run as; nil means: as ourselves.
type credential syscall.Credential

// unprivileged names the user to run Postgres as when we are root. initdb
// wants one with an entry in the password file.
func unprivileged() (*credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, errUID := strconv.ParseUint(u.Uid, 10, 32)
		gid, errGID := strconv.ParseUint(u.Gid, 10, 32)
		if errUID == nil && errGID == nil {
			return &credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
		}
	}
	return nil, errors.New("pgdev: Postgres doesn't run as root, and there is neither a user postgres nor nobody: " +
		"run as another user or add one of these")
}

func (c *credential) own(dir string) error {
	if c == nil {
		return nil
	}
	return os.Chown(dir, int(c.Uid), int(c.Gid))
}

// reach refuses a directory below one that the user may not enter; the
// server's own complaint doesn't say which.
func (c *credential) reach(dir string) error {
	if c == nil {
		return nil
	}
	for up := filepath.Dir(dir); ; up = filepath.Dir(up) {
		info, err := os.Stat(up)
		if err != nil {
			return err
		}
		owner, known := info.Sys().(*syscall.Stat_t)
		if info.Mode()&0o001 == 0 && !(known && owner.Uid == c.Uid) {
			return fmt.Errorf("directory %q is below %q, which the user %d that Postgres runs as can't enter: name another directory", dir, up, c.Uid)
		}
		if up == filepath.Dir(up) {
			return nil
		}
	}
}

// Unprivileged prepares cmd to run as the user of the server. It matters only
// to root's processes.
func Unprivileged(cmd *exec.Cmd) error {
	cred, err := unprivileged()
	if err == nil {
		cred.apply(cmd)
	}
	return err
}

// apply also clears the environment of what would steer Postgres.
func (c *credential) apply(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Credential = (*syscall.Credential)(c)
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "PG") && !strings.HasPrefix(entry, "LC_") {
			cmd.Env = append(cmd.Env, entry)
		}
	}
	cmd.Env = append(cmd.Env, "LC_ALL=C", "TZ=UTC")
}
