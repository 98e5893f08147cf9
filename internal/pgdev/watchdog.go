package pgdev

import (
	"io"
	"os/exec"
	"path/filepath"
)

// watchdogScript waits for the end of its input, which is the end of the
// owner, and clears up. After a proper Stop it finds nothing to do. $1 is the
// data directory, the others are directories to remove.
const watchdogScript = `
cat >/dev/null
data=$1
shift
pid=$(head -n 1 "$data/postmaster.pid" 2>/dev/null)
n=0
while [ -n "$pid" ] && [ -f "$data/postmaster.pid" ] && kill -0 "$pid" 2>/dev/null && [ $n -lt 100 ]; do
	[ $n -eq 0 ] && kill -INT "$pid"
	[ $n -eq 50 ] && kill -QUIT "$pid"
	n=$((n + 1))
	sleep 0.1
done
[ $# -eq 0 ] || rm -rf "$@"
`

type watchdog struct {
	owner io.Closer
	done  chan struct{}
}

func startWatchdog(h *home, cred *credential) (*watchdog, error) {
	args := []string{"-c", watchdogScript, "pawl-pg-watchdog", filepath.Join(h.dir, "data")}
	cmd := exec.Command("/bin/sh", append(args, h.throwaway...)...)
	cmd.Dir = "/"
	cred.apply(cmd)
	cmd.SysProcAttr.Setpgid = true
	owner, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	w := &watchdog{owner: owner, done: make(chan struct{})}
	go func() {
		_ = cmd.Wait()
		close(w.done)
	}()
	return w, nil
}

// dismiss returns when the watchdog has ended.
func (w *watchdog) dismiss() {
	if w != nil {
		_ = w.owner.Close()
		<-w.done
	}
}
