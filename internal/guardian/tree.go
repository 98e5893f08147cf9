package guardian

import (
	"os"
	"strings"
	"syscall"
)

// markerVariable is in the environment of every process of the tree, unless that process has cleared it: the markers of
// the guardians above it, separated by commas.
const markerVariable = "PAWL_GUARD"

// mark adds a guardian's marker.
func mark(env []string, marker string) []string {
	out := make([]string, 0, len(env)+1)
	for _, e := range env {
		if above, ok := strings.CutPrefix(e, markerVariable+"="); ok {
			marker = above + "," + marker
			continue
		}
		out = append(out, e)
	}
	return append(out, markerVariable+"="+marker)
}

// Forwarded are the signals that a command gets through its owner.
func Forwarded() []os.Signal {
	return []os.Signal{
		syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGTSTP, syscall.SIGCONT,
	}
}

// tree is a command with all that descends from it.
type tree struct{ marker string }

// proc is one process as it was seen.
type proc struct {
	pid, parent, group int
	started            string // with the pid it names one process
}

func self() int { return os.Getpid() }
