package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// scratch is a root with nothing in it but the static binary, as an image that is made from scratch.
type scratch string

// newScratch builds the binary as the Dockerfile does.
func newScratch(t *testing.T) scratch {
	t.Helper()
	root := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(root, "pawl"), ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v: %s", err, said)
	}
	return scratch(root)
}

// run runs pawl in there, without any environment. Who isn't root becomes it in a user namespace of its own.
func (s scratch) run(t *testing.T, args ...string) (code int, out, said string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/pawl", args...)
	cmd.Env, cmd.Dir = []string{}, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: string(s)}
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	var o, e bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &e
	var exit *exec.ExitError
	if err := cmd.Run(); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		t.Fatalf("pawl %v: %v", args, err)
	}
	return code, o.String(), e.String()
}

const zonesFile = `version: 1
defaults: {owner: a-team}
jobs:
  - {name: berlin, kind: go, schedule: "30 2 * * *", timezone: Europe/Berlin, go: {}}
  - {name: howe, kind: go, schedule: "15 2 * * *", timezone: Australia/Lord_Howe, go: {}}
  - {name: mars, kind: go, schedule: "0 0 * * *", timezone: Mars/Base, go: {}}
`

// An image from scratch has no zones, no certificates and no C library: the binary brings its own zones, never falls back
// to UTC, and a zone that there isn't spoils its own job alone.
func TestTheBinaryKnowsItsZonesInAnEmptyRoot(t *testing.T) {
	t.Parallel()
	s := newScratch(t)
	if err := os.WriteFile(filepath.Join(string(s), "pawl.yaml"), []byte(zonesFile), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ job, from, to, want string }{
		{"berlin", "2026-03-28", "2026-03-31", "2026-03-28T01:30:00Z 2026-03-29T01:00:00Z 2026-03-30T00:30:00Z"},
		{"howe", "2025-10-04", "2025-10-06", "2025-10-04T15:30:00Z 2025-10-05T15:15:00Z"},
	} {
		code, out, said := s.run(t, "plan", "--config", "pawl.yaml", "--from", c.from+"T00:00:00Z", "--to", c.to+"T00:00:00Z", "--job", c.job, "--json")
		var ticks []struct {
			At string `json:"scheduled_at"`
		}
		if err := json.Unmarshal([]byte(out), &ticks); code != codeOK || err != nil {
			t.Errorf("plan of %s: exit code %d, %v: %s", c.job, code, err, said)
			continue
		}
		var got []string
		for _, x := range ticks {
			got = append(got, x.At)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s is planned for %s, want %s", c.job, got, c.want)
		}
	}
	code, out, said := s.run(t, "plan", "--config", "pawl.yaml", "--from", "2026-03-28", "--to", "2026-03-31", "--job", "mars")
	if code != codeUsage || out != "" || !strings.Contains(said, `mars.timezone: "Mars/Base" is not an IANA zone`) {
		t.Errorf("plan of mars: exit code %d: %s%s", code, out, said)
	}
	code, out, said = s.run(t, "lint", "--config", "pawl.yaml")
	if text := out + said; code != codeUsage || !strings.Contains(text, "pawl.yaml:6:") || !strings.Contains(text, `"Mars/Base" is not an IANA zone`) ||
		strings.Contains(text, "berlin.timezone") || strings.Contains(text, "howe.timezone") {
		t.Errorf("lint: exit code %d: %s", code, text)
	}
}
