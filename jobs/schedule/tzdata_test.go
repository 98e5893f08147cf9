package schedule_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pawl/jobs/schedule"
)

// TestTheEmbeddedZonesAreOfTheNamedRelease ties the version to the file. To replace it:
// copy lib/time/zoneinfo.zip of a newer Go here, take the release from update.bash
// beside it, and change tzVersion and this sum.
func TestTheEmbeddedZonesAreOfTheNamedRelease(t *testing.T) {
	t.Parallel()
	const release, sum = "2025c", "8f55634d05f8bca1f7bc7c69c5933428c69357e0bdf565e5ba224e3f88ff12e8"
	got := sha256.Sum256([]byte(schedule.Zoneinfo()))
	if hex.EncodeToString(got[:]) != sum || schedule.TZVersion() != release {
		t.Errorf("zoneinfo.zip is %x and TZVersion %s, want %s and %s", got, schedule.TZVersion(), sum, release)
	}
	// A zone that came with 2025b.
	s := parse(t, schedule.Spec{Expr: "0 12 * * *", Zone: "America/Coyhaique"})
	if got, want := s.Next(utc(t, "2026-07-01T00:00Z")), utc(t, "2026-07-01T15:00Z"); !got.Equal(want) {
		t.Errorf("%s: %s, want %s", s, got, want)
	}
}

func TestEveryEmbeddedZoneCanBeRead(t *testing.T) {
	t.Parallel()
	names := schedule.ZoneNames()
	if len(names) < 590 {
		t.Errorf("%d zones, want those of the whole database", len(names))
	}
	for _, name := range names {
		s, err := schedule.Parse(schedule.Spec{Expr: "0 12 * * *", Zone: name})
		if err != nil || s.Zone().String() != name {
			t.Errorf("%s: %v, %v", name, s, err)
		}
	}
}

const childZone = "PAWL_TEST_CHILD_ZONE"

// TestZonesAreNeverTheHosts lets a process of its own answer whose host claims that
// Berlin has Tokyo's time, which the time package would believe.
func TestZonesAreNeverTheHosts(t *testing.T) {
	t.Parallel()
	if os.Getenv(childZone) != "" {
		host, err := time.LoadLocation("Europe/Berlin")
		if err != nil {
			t.Fatal(err)
		}
		if _, off := time.Date(2026, 7, 1, 0, 0, 0, 0, host).Zone(); off != 9*3600 {
			t.Fatalf("the host's Berlin is %d s off, want Tokyo's", off)
		}
		s := parse(t, schedule.Spec{Expr: "0 2 * * *", Zone: "Europe/Berlin"})
		if got, want := s.Next(utc(t, "2026-07-01T00:00Z")), utc(t, "2026-07-02T00:00Z"); !got.Equal(want) {
			t.Errorf("Next = %s, want %s", got, want)
		}
		return
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "Europe"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "Europe", "Berlin"), tokyo(), 0o600); err != nil {
		t.Fatal(err)
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestZonesAreNeverTheHosts$", "-test.v")
	child.Env = append(os.Environ(), childZone+"=1", "ZONEINFO="+dir, "TZ=Asia/Tokyo")
	if out, err := child.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS") {
		t.Errorf("%v\n%s", err, out)
	}
}

// tokyo returns a time zone file whose one offset is nine hours.
func tokyo() []byte {
	head := "TZif" + strings.Repeat("\x00", 16)
	counts := "\x00\x00\x00\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x01" + "\x00\x00\x00\x04"
	return []byte(head + counts + "\x00\x00\x7e\x90\x00\x00" + "JST\x00")
}

func TestAZoneIsOnlyFoundAsItIsSpelled(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Europe/", "europe/Berlin", "Europe/Berlin ", "/Europe/Berlin", "posix/Europe/Berlin", "Factory", "zoneinfo.zip", "\x00"} {
		if s, err := schedule.Parse(schedule.Spec{Expr: "@daily", Zone: name}); err == nil {
			t.Errorf("%q is accepted as %s", name, s.Zone())
		}
	}
	for _, name := range []string{"", "UTC"} {
		if s := parse(t, schedule.Spec{Expr: "@daily", Zone: name}); s.Zone() != time.UTC {
			t.Errorf("%q is %s, want time.UTC itself", name, s.Zone())
		}
	}
}
