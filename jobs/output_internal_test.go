package jobs

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
)

func keptOutput(t *testing.T, pool *pgxpool.Pool) (text string) {
	t.Helper()
	err := pool.QueryRow(t.Context(), `select coalesce(string_agg(convert_from(head, 'UTF8') || case when partial then ' …' else '' end, ' '), '') from pawl.outputs`).Scan(&text)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestOutputSoFarIsWrittenUnderTheTokenAndNeverInPlaceOfTheEnd(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	r.chain(t, 1, Job{})
	run := r.mustStart(t, pool)
	soFar := func(text string, bytes int64) {
		t.Helper()
		if err := run.KeepSoFar(t.Context(), Output{Head: []byte(text), Bytes: bytes}); err != nil {
			t.Fatal(err)
		}
	}
	soFar("one", 1)
	soFar("two", 2)
	soFar("late", 1) // a statement that was overtaken
	if got := keptOutput(t, pool); got != "two …" {
		t.Errorf("kept %q", got)
	}
	if _, err := pool.Exec(t.Context(), `update pawl.locks set expires_at = clock_timestamp() - interval '1 s' where name = 'L'`); err != nil {
		t.Fatal(err)
	}
	soFar("after the lease", 3)
	if got := keptOutput(t, pool); got != "two …" {
		t.Errorf("an old holder wrote %q", got)
	}
	if _, err := pool.Exec(t.Context(), `update pawl.locks set expires_at = clock_timestamp() + interval '1 min' where name = 'L'`); err != nil {
		t.Fatal(err)
	}
	if err := run.Keep(t.Context(), Output{Head: []byte("the end"), Bytes: 3}); err != nil {
		t.Fatal(err)
	}
	soFar("after the end", 4)
	if got := keptOutput(t, pool); got != "the end" {
		t.Errorf("kept %q", got)
	}
	if err := run.KeepSoFar(t.Context(), Output{Head: make([]byte, MostSoFar), Tail: []byte{1}, Bytes: 1 << 20}); err == nil {
		t.Error("more than a small statement was taken")
	}
}
