// Package examples_test runs the examples as a stranger would.
package examples_test

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pawl/internal/pgtest"
)

// A module outside this one builds a worker and runs it, on an empty database.
func TestAnotherModuleBuildsAWorkerInUnder40Lines(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("embed/main.go")
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(source, []byte("\n")); n >= 40 {
		t.Errorf("embed/main.go has %d lines", n)
	}
	worker := filepath.Join(t.TempDir(), "embed")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", worker, ".")
	build.Dir = "embed"
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	run := exec.CommandContext(ctx, worker)
	run.Env = append(os.Environ(), "DATABASE_URL="+pgtest.Empty(t))
	var panicked bytes.Buffer
	run.Stderr = &panicked
	out, err := run.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	complete := 0
	var said strings.Builder
	for lines := bufio.NewScanner(out); lines.Scan(); {
		said.WriteString(lines.Text() + "\n")
		if !strings.Contains(lines.Text(), `msg="run complete"`) {
			continue
		}
		if complete++; complete == 2 {
			if err := run.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := run.Wait(); err != nil || complete < 2 {
		t.Errorf("the worker completed %d runs and ended with %v after ^C:\n%s%s", complete, err, said.String(), panicked.String())
	}
}
