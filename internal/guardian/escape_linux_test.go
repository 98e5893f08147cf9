package guardian

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// silent checks that nobody writes to a file any more.
func silent(t *testing.T, file string) {
	t.Helper()
	before := size(t, file)
	<-time.After(300 * time.Millisecond) // real clock: nobody can tell that nothing is written
	if after := size(t, file); before == 0 || after != before {
		t.Errorf("%d bytes were written after %d", after-before, before)
	}
}

// hops starts a child and ends, for ever, without the marker and out of the group: by the time that somebody has looked, it
// has gone.
const hops = `setsid env -i PATH="$PATH" FILE="$FILE" HOP='trap "" TERM; echo x >> "$FILE"; sh -c "$HOP" & exit' sh -c 'eval "$HOP"' & sleep 1000`

func TestNobodyEscapes(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"who forks and ends":                {"/bin/sh", "-c", hops},
		"whose first thread ended":          {"/bin/sh", "-c", `trap "" TERM; "$SELF" headless "$FILE" & sleep 1000; sleep 1000`},
		"whose parent's first thread ended": {"/bin/sh", "-c", `env -i "$SELF" headless "$FILE" & sleep 1000`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, how := range []string{"deadline", "killed guardian"} {
				file := filepath.Join(t.TempDir(), "file")
				cmd, out, _ := ownerOf(t, 2*time.Second, args, "FILE="+file, "SELF="+os.Args[0])
				eventually(t, "it writes", func() bool { info, err := os.Stat(file); return err == nil && info.Size() > 20 })
				if how != "deadline" {
					child(t, cmd.Process.Pid).signal(syscall.SIGKILL)
				}
				told(t, out)
				silent(t, file)
			}
		})
	}
}

// Whoever is stopped, and in whatever pair: the kernel wakes them when the time has come.
func TestStoppedOwnersAndGuardiansWakeAtTheDeadline(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(owner *os.Process, guardian proc){
		"both stopped":                   func(o *os.Process, g proc) { _ = o.Signal(syscall.SIGSTOP); g.signal(syscall.SIGSTOP) },
		"guardian stopped, owner killed": func(o *os.Process, g proc) { g.signal(syscall.SIGSTOP); _ = o.Kill() },
		"guardian killed, owner stopped": func(o *os.Process, g proc) { _ = o.Signal(syscall.SIGSTOP); g.signal(syscall.SIGKILL) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const lasts = 3 * time.Second
			file := filepath.Join(t.TempDir(), "file")
			start := Clock()
			cmd, _, value := ownerOf(t, lasts, []string{"/bin/sh", "-c", `env -i setsid sh -c 'trap "" TERM; while :; do echo x >> "$0"; sleep 0.01; done' "$FILE" & ` + stubborn},
				"FILE="+file, "READY="+filepath.Join(t.TempDir(), "ready"))
			written(t, file)
			do(cmd.Process, child(t, cmd.Process.Pid))
			eventually(t, "nobody is left", func() bool { return marked(value) == 0 || Clock() > start+lasts+10*time.Second })
			if late := Clock() - start - lasts; late > 2*time.Second { // on a machine with much else to do
				t.Errorf("gone %v after the deadline", late)
			}
			silent(t, file)
		})
	}
}
