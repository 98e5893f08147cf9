package kinds_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/internal/faults"
	"pawl/internal/pgtest"
	"pawl/jobs"
)

// talks talks on until its second attempt, which ends.
func talks(context.Context, *pgxpool.Pool) ([]jobs.Job, error) {
	fn, err := shell(`echo "attempt $PAWL_ATTEMPT begins"; n=0
		while [ $PAWL_ATTEMPT = 1 ]; do n=$((n+1)); echo "step $n"; sleep 0.05; done; echo done`).Func()
	return []jobs.Job{{Name: "x", Schedule: "0 0 * * *", Start: yesterday(), TTL: time.Second, RetryDelay: time.Second, Func: fn}}, err
}

// Nobody is there to tell at the end what a run has said whose process is killed: what it had said before is kept.
func TestWhatACommandSaidBeforeItsWorkerWasKilledIsKept(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	pool := pgtest.Open(t, url)
	h := jobs.NewHistory(pool)
	w := faults.Spawn(t, "talks", url)
	until(t, pool, 1, `select count(*) from pawl.outputs where partial and convert_from(head, 'UTF8') like '%step 3%'`)
	w.Kill(t)
	faults.Spawn(t, "talks", url)
	until(t, pool, 1, `select count(*) from pawl.periods where state = 'complete'`)
	all := runs(t, pool, 2)
	if all[0].State != "lost" || !strings.HasPrefix(all[0].text(), "attempt 1 begins\nstep 1\nstep 2\nstep 3\n") {
		t.Errorf("attempt 1 is %s and said %q", all[0].State, all[0].text())
	}
	if all[1].text() != "attempt 2 begins\ndone\n" {
		t.Errorf("attempt 2 said %q", all[1].text())
	}
	for i, id := range []uuid.UUID{all[0].ID, all[1].ID} {
		if o, err := h.Output(t.Context(), id); err != nil || o.Partial != (i == 0) {
			t.Errorf("attempt %d: partial %t, %v", i+1, o.Partial, err)
		}
	}
	why, err := h.Why(t.Context(), "x", all[0].Key)
	if text := strings.Join(why.Sentences, "\n"); err != nil || strings.Count(text, "Its output is incomplete, ") != 1 || !strings.Contains(text, `the last that is kept: "step `) {
		t.Errorf("why says %s, %v", text, err)
	}
}
