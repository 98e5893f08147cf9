package pgdev

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// roomiest prefers memory: initdb alone writes 39 MB in a thousand files.
func roomiest() string {
	const shm, room, writable = "/dev/shm", 1 << 30, 2
	var st syscall.Statfs_t
	if syscall.Statfs(shm, &st) == nil && st.Bavail*uint64(st.Bsize) > room && syscall.Access(shm, writable) == nil {
		return shm
	}
	return "/tmp"
}

// reap removes throw-away directories whose owner is gone. It is the last
// net, for when the watchdog was killed too.
func reap(ctx context.Context) {
	for _, base := range []string{"/tmp", "/dev/shm"} {
		dirs, _ := filepath.Glob(filepath.Join(base, prefix+"*")) // The pattern is well formed.
		for _, dir := range dirs {
			if abandoned(ctx, dir) {
				// What can't be removed is for the next start, or for its owner.
				if os.RemoveAll(filepath.Join(dir, "data")) == nil {
					_ = os.RemoveAll(dir)
				}
			}
		}
	}
}

func abandoned(ctx context.Context, dir string) bool {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() {
		return false
	}
	f, err := os.OpenFile(filepath.Join(dir, ownerFile), os.O_RDWR|syscall.O_NOFOLLOW, 0)
	if err != nil {
		// Its owner is between making the directory and locking it, or died there.
		return os.IsNotExist(err) && time.Since(info.ModTime()) > time.Hour
	}
	defer func() { _ = f.Close() }()
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil && !answers(ctx, dir)
}

func answers(ctx context.Context, dir string) bool {
	dialer := net.Dialer{Timeout: time.Second}
	conn, err := dialer.DialContext(ctx, "unix", filepath.Join(dir, ".s.PGSQL.5432"))
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}
