package jobs

import (
	"errors"
	"strings"
	"testing"
)

// keep makes a started run one whose function could be called.
func (r *Runner) keep(t *testing.T, run *Run) *Run {
	t.Helper()
	_, run.kept = r.repo.Keep(t.Context(), run.lease)
	t.Cleanup(run.kept.Stop)
	return run
}

// Postgres takes no NUL and no half characters: the end of the run, and of all that share its transaction, would fail.
func TestAnErrorOfAnyBytesEndsItsRun(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"NUL": "bad row \x00 in file", "not UTF-8": "bad row \xff\xfe in file", "cut inside a character": "bad row " + strings.Repeat("é", 3000) + "x",
		"the same, one byte further": "bad row  " + strings.Repeat("é", 3000),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, pool := opened(t)
			owes(t, pool, "1")
			r.finish(t.Context(), r.keep(t, r.mustStart(t, pool)), stateFailed, errors.New(text))
			if n := exec(t, pool, `select count(*) from pawl.runs where state = 'failed' and error like 'bad row%'`); n != 1 {
				t.Error("the run isn't ended with its error")
			}
		})
	}
}
