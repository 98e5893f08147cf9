package crew

import (
	"flag"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"strings"
)

// Soak is how long the tests of an example play, and where their figures go: two rounds with seeds that never change, unless
// the flags of make soak say otherwise.
type Soak struct {
	Rounds int
	Seed   uint64 // of the first round; the next one has the next
	file   string
}

// NewSoak defines the flags -rounds, -seed and -figures.
func NewSoak(flags *flag.FlagSet) *Soak {
	s := &Soak{}
	flags.IntVar(&s.Rounds, "rounds", 2, "how many rounds, each with a seed of its own")
	flags.Uint64Var(&s.Seed, "seed", 1, "the first round's")
	flags.StringVar(&s.file, "figures", "", "the file whose table of examples gets what the rounds have come to")
	return s
}

// Quiet are the flags of a play in a test, which says what happens to say.
func Quiet(seed uint64, say io.Writer) Flags {
	return Flags{Exit: true, JSON: true, Seed: seed, out: io.Discard, say: say}
}

// Seeds are those of all rounds.
func (s *Soak) Seeds() iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for n := range s.Rounds {
			if !yield(s.Seed + uint64(n)) { //nolint:gosec // not negative
				return
			}
		}
	}
}

const soakTable = `## Examples whose workers are killed and paused

Written by ` + "`make soak`" + `: rounds of SIGKILL and SIGSTOP/SIGCONT on three workers of each example, at moments that the seed says.
Each round must end with the right result and has had a takeover at least; the same test finds the example's broken variant.

| example | rounds | first seed | kills | pauses | takeovers | refusals | in the end |
|---|---:|---:|---:|---:|---:|---:|---|
`

// Record writes what all rounds together have come to into the file of -figures, if there is one. It takes the place of what an
// earlier soak of the example has written.
func (s *Soak) Record(example string, all Faults, right string) error {
	if s.file == "" {
		return nil
	}
	b, err := os.ReadFile(s.file)
	if err != nil {
		return err
	}
	row := fmt.Sprintf("| [%s](../examples/%[1]s/README.md) | %d | %d | %d | %d | %d | %d | %s |\n",
		example, s.Rounds, s.Seed, all.Kills, all.Pauses, all.Takeovers, all.Refusals, right)
	return os.WriteFile(s.file, []byte(withRow(string(b), example, row)), 0o644) //nolint:gosec // a page of the docs
}

// withRow is the page with the row in its table of examples, which is the page's end.
func withRow(page, example, row string) string {
	head, table, _ := strings.Cut(page, "## Examples whose workers")
	rows := []string{row}
	for line := range strings.Lines(table) {
		if strings.HasPrefix(line, "| [") && !strings.HasPrefix(line, "| ["+example+"]") {
			rows = append(rows, line)
		}
	}
	slices.Sort(rows)
	return strings.TrimRight(head, "\n") + "\n\n" + soakTable + strings.Join(rows, "")
}

// Add adds a round's.
func (f *Faults) Add(g Faults) {
	f.Kills, f.Pauses, f.Takeovers, f.Refusals = f.Kills+g.Kills, f.Pauses+g.Pauses, f.Takeovers+g.Takeovers, f.Refusals+g.Refusals
}
