package faults_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

const reportHead = `# Faults and how long they take

Written by ` + "`make faults`" + `; seed %d, leases of %s, %d workers, four locks with a batch every 150 ms, one machine.

Each fault has happened five times, at moments and for times that the seed says. The times are milliseconds from the
fault's beginning; *lasted* is the fault, *recovery* the longest that a lock which it hit was without a committed batch:
the holder's own next one, or its successor's first. All periods of every run were complete exactly once afterwards, with
the right sums, and no lower token had committed after a higher one.

| fault | what happens | lasted, at most | recovery, median | recovery, worst | takeovers | refusals |
|---|---|---:|---:|---:|---:|---:|
`

const reportFoot = `
How to read it:

- A lease that can't be renewed ends by the database's clock. The sweep knows when, and the next worker begins at once:
  what cuts off one worker costs about a lease, however long it lasts.
- A holder that is stopped inside a transaction keeps its successor out until the server gives that transaction up: one
  more lease (*holder stopped*, at its worst).
- What stops the server costs as long as it lasts.
- This workload gives up at the first error. Its run has then failed, and a failed run is tried again after a second at
  the earliest: that is most of *restarted* and *failed over*, and *reply lost* at its worst. While the server is
  read-only the end of such a run can't be written either, and is tried again up to a second later.
- Rarely it takes longer than shown: when what was lost is the word that a delivery was fetched. Its own process finds
  it, and looks every five seconds.
- A clock that is set costs one renewal, and no run.

All of them together, from a seed that is the date, are a test: TestFaultsThatComeTogetherLoseNothing; and each day
another one by itself: TestAFaultIsRecoveredFromAndLosesNothing. What the lane rule withstands, and that the backstop
is needed for it: TestTheLanesDrainAfterAStorm and TestWithoutTheBackstopAStormStrandsPeriods.
`

func write(t *testing.T, file string, seed uint64, results []result) {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, reportHead, seed, ttl, workers)
	for _, r := range results {
		slices.Sort(r.recovery)
		fmt.Fprintf(&b, "| %s | %s | %d | %d | %d | %d | %d |\n", r.kind.name, r.kind.what, ms(slices.Max(r.lasted)),
			ms(r.recovery[len(r.recovery)/2]), ms(slices.Max(r.recovery)), r.seen.Takeovers, r.seen.Refusals)
	}
	b.WriteString(reportFoot)
	b.WriteString(examples(t, file))
	if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// examples are the file's end, which make soak has written.
func examples(t *testing.T, file string) string {
	t.Helper()
	old, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	if _, rest, found := strings.Cut(string(old), "\n## Examples "); found {
		return "\n## Examples " + rest
	}
	return ""
}

func ms(d time.Duration) int64 { return d.Milliseconds() }
