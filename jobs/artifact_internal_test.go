package jobs

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/fence"
)

// hookedStore does something else in the middle of publishing, and of opening.
type hookedStore struct {
	*ArtifactDir
	sealed func() // the file has its name, the pointer doesn't name it yet
	opened func() // the pointer was read, the file isn't open yet
}

func (s *hookedStore) Create(ctx context.Context, temp string) (ArtifactWriter, error) {
	w, err := s.ArtifactDir.Create(ctx, temp)
	return &hookedWriter{w, s}, err
}

func (s *hookedStore) Open(ctx context.Context, file string) (io.ReadCloser, error) {
	once(&s.opened)
	return s.ArtifactDir.Open(ctx, file)
}

func once(hook *func()) {
	if f := *hook; f != nil {
		*hook = nil
		f()
	}
}

type hookedWriter struct {
	ArtifactWriter
	store *hookedStore
}

func (w *hookedWriter) Seal(ctx context.Context, file string) error {
	err := w.ArtifactWriter.Seal(ctx, file)
	once(&w.store.sealed)
	return err
}

// published is a runner with a store, in which job j owes a period under lock L, and what reads and sweeps it by the tokens alone.
type published struct {
	*Runner
	pool  *pgxpool.Pool
	store *hookedStore
	dir   string
	read  *Artifacts
}

func newPublished(t *testing.T) *published {
	t.Helper()
	r, pool := opened(t)
	owes(t, pool, "1")
	p := &published{Runner: r, pool: pool, dir: t.TempDir()}
	d, err := NewArtifactDir(p.dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	p.store = &hookedStore{ArtifactDir: d}
	r.cfg.Artifacts = p.store
	if p.read, err = NewArtifacts(ArtifactsConfig{Pool: pool, Store: p.store, Spare: SpareNothing}); err != nil {
		t.Fatal(err)
	}
	return p
}

// holder is a run under a token of its own; the one before has lost its lease and not heard of it.
func (p *published) holder(t *testing.T) *Run {
	t.Helper()
	exec(t, p.pool, `with gone as (update pawl.locks set expires_at = clock_timestamp() - interval '1 s' where name = 'L' and grant_id is not null returning 1) select count(*) from gone`)
	if _, err := p.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	return p.keep(t, p.mustStart(t, p.pool))
}

func says(text string) func(io.Writer) error {
	return func(w io.Writer) error { _, err := io.WriteString(w, text); return err }
}

func (p *published) publish(t *testing.T, run *Run, text string) Artifact {
	t.Helper()
	a, err := run.Publish(t.Context(), "sub/report.csv", says(text))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (p *published) current(t *testing.T) string {
	t.Helper()
	r, err := p.read.Open(t.Context(), "sub/report.csv")
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(r)
	if err = errors.Join(err, r.Close()); err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func (p *published) mustSweep(t *testing.T) Swept {
	t.Helper()
	n, err := p.read.Sweep(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// files are the store's, without the plain name.
func (p *published) files(t *testing.T) (all []string) {
	t.Helper()
	err := p.store.Files(t.Context(), func(f StoredFile) error {
		if f.File != "sub/report.csv" {
			all = append(all, f.File)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// ages lets what was superseded have been so for a year.
func (p *published) ages(t *testing.T) {
	t.Helper()
	exec(t, p.pool, `with a as (update pawl.artifact_versions set superseded_at = superseded_at - interval '1 year' where superseded_at is not null returning 1) select count(*) from a`)
}

func TestAFileIsFoundOnlyOnceThePointerNamesIt(t *testing.T) {
	t.Parallel()
	p := newPublished(t)
	run := p.holder(t)
	p.store.sealed = func() {
		if _, err := p.read.Open(t.Context(), "sub/report.csv"); !errors.Is(err, ErrNoArtifact) {
			t.Errorf("Open before the pointer = %v, want ErrNoArtifact", err)
		}
	}
	a := p.publish(t, run, "one")
	if a.Version != 1 || a.Size != 3 || a.Token != run.token.Seq || a.Run != run.ID || len(a.Hash) != 64 || a.At.IsZero() {
		t.Errorf("published %+v", a)
	}
	if got := p.current(t); got != "one" {
		t.Errorf("read %q", got)
	}
	if got := p.files(t); len(got) != 1 || got[0] != a.File || !strings.HasPrefix(a.File, "sub/report.csv.") {
		t.Errorf("files %q, want only %s", got, a.File)
	}
}

// Attack: the sweep comes between the link and the commit of the pointer.
func TestALeftoverIsSparedWhileItsTokenMayPassAGuard(t *testing.T) {
	t.Parallel()
	p := newPublished(t)
	run := p.holder(t)
	for i, sql := range []string{
		`select 1`, // it holds the lease
		`update pawl.locks set expires_at = clock_timestamp() - interval '1 s' where name = 'L' returning 1`, // a clock that is set back would revive it
	} {
		p.store.sealed = func() {
			exec(t, p.pool, sql)
			if n := p.mustSweep(t); n != (Swept{Left: 1}) {
				t.Errorf("%d: swept %+v, want one file left", i, n)
			}
			exec(t, p.pool, `update pawl.locks set expires_at = clock_timestamp() + interval '1 min' where name = 'L' returning 1`)
		}
		if _, err := run.Publish(t.Context(), "sub/report.csv", says(strings.Repeat("x", i+1))); err != nil {
			t.Fatal(err)
		}
		if got := p.current(t); len(got) != i+1 {
			t.Errorf("read %q", got)
		}
	}
}

// Attack: the lease was taken by force, but a guarded transaction that would move the pointer is still open.
func TestALeftoverIsSparedWhileAGuardedTransactionIsOpen(t *testing.T) {
	t.Parallel()
	p := newPublished(t)
	run := p.holder(t)
	p.publish(t, run, "one")
	p.store.sealed = func() { panic("killed") }
	func() {
		defer func() { _ = recover() }()
		_, _ = run.Publish(t.Context(), "sub/report.csv", says("never"))
	}()
	guard, err := p.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = guard.Rollback(t.Context()) }()
	if err := fence.Guard(t.Context(), guard, run.token); err != nil {
		t.Fatal(err)
	}
	exec(t, p.pool, `update pawl.locks set grant_id = null, holder = null, expires_at = null where name = 'L' returning 1`)
	if n := p.mustSweep(t); n != (Swept{Left: 1}) {
		t.Errorf("with an open guard swept %+v, want one file left", n)
	}
	if err := guard.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := p.mustSweep(t); n != (Swept{Removed: 1}) {
		t.Errorf("swept %+v, want one file removed", n)
	}
	if got := p.current(t); got != "one" {
		t.Errorf("read %q", got)
	}
}

// Attack: the pointer moves after the sweep has looked at all pointers, and the run ends before it looks at the lock.
func TestThePointersAreAskedAfterTheToken(t *testing.T) {
	t.Parallel()
	p := newPublished(t)
	run := p.holder(t)
	var found []leftover
	p.store.sealed = func() {
		var err error
		file := p.files(t)[0]
		found, err = p.read.leftovers(t.Context(), leftoverSQL, []string{file}, []string{"sub/report.csv"}, []int64{run.token.Seq}, time.Hour)
		if err != nil || len(found) != 1 {
			t.Fatalf("before the pointer has moved the leftovers are %v, %v", found, err)
		}
	}
	p.publish(t, run, "one")
	p.holder(t)
	var n Swept
	if err := p.read.removeAll(t.Context(), found, &n); err != nil || n != (Swept{Left: 1}) {
		t.Errorf("swept %+v, %v, want the file left", n, err)
	}
	if got := p.current(t); got != "one" {
		t.Errorf("read %q", got)
	}
}

// Attack: the old holder wakes between its link and its pointer.
func TestAnOldHolderMovesNoPointerAndItsFileIsSwept(t *testing.T) {
	t.Parallel()
	p := newPublished(t)
	old := p.holder(t)
	var young *Run
	p.store.sealed = func() {
		young = p.holder(t)
		p.publish(t, young, "the successor's")
	}
	_, err := old.Publish(t.Context(), "sub/report.csv", says("the old holder's"))
	if !errors.Is(err, fence.ErrStale) && !errors.Is(err, fence.ErrNotHeld) {
		t.Errorf("Publish of the old holder = %v, want a refusal", err)
	}
	if n := exec(t, p.pool, `select count(*) from pawl.refusals where token = $1`, old.token.Seq); n != 1 {
		t.Errorf("%d refusals are recorded, want 1", n)
	}
	if got := p.current(t); got != "the successor's" {
		t.Errorf("read %q", got)
	}
	if n := p.mustSweep(t); n != (Swept{Removed: 1}) {
		t.Errorf("swept %+v, want the old holder's file removed", n)
	}
	if got := p.files(t); len(got) != 1 || !strings.Contains(got[0], fileOfArtifact("sub/report.csv", young.token.Seq, p.hash(t))) {
		t.Errorf("files %q", got)
	}
}

func (p *published) hash(t *testing.T) string {
	t.Helper()
	a, err := p.read.Current(t.Context(), "sub/report.csv")
	if err != nil {
		t.Fatal(err)
	}
	return a.Hash
}

// The mark stops who goes past the run's own guard, too.
func TestAnOlderTokenMovesNoPointerUnderTheMark(t *testing.T) {
	t.Parallel()
	p := newPublished(t)
	old := p.holder(t)
	p.publish(t, p.holder(t), "new")
	err := pgx.BeginFunc(t.Context(), p.pool, func(tx pgx.Tx) error {
		return fence.Check(t.Context(), tx, old.token, artifactTarget("sub/report.csv"))
	})
	if !errors.Is(err, fence.ErrStale) {
		t.Errorf("Check = %v, want ErrStale", err)
	}
}

// Attack: a second publication under the same token takes the file away that the pointer names.
func TestARunThatPublishesAgainNeverReplacesAFile(t *testing.T) {
	t.Parallel()
	p := newPublished(t)
	run := p.holder(t)
	var all []Artifact
	for _, text := range []string{"a", "b", "b", "a"} {
		all = append(all, p.publish(t, run, text))
		if got := p.current(t); got != text {
			t.Errorf("read %q, want %q", got, text)
		}
	}
	versions := []int64{all[0].Version, all[1].Version, all[2].Version, all[3].Version}
	if !slices.Equal(versions, []int64{1, 2, 2, 3}) {
		t.Errorf("versions %v: the same bytes twice are one version", versions)
	}
	if all[0].File != all[3].File {
		t.Errorf("files %q and %q of the same bytes", all[0].File, all[3].File)
	}
	for _, a := range all {
		if err := p.read.Verify(t.Context(), a); err != nil {
			t.Error(err)
		}
	}
	p.ages(t)
	p.holder(t)
	if n := p.mustSweep(t); n.Removed != 1 { // b; the first version's file is the third's too
		t.Errorf("swept %+v", n)
	}
	if got := p.current(t); got != "a" {
		t.Errorf("read %q", got)
	}
}

// Attack: retention takes the version between the reader's look at the pointer and its open.
func TestASupersededVersionStaysAndAReaderAsksOnceMore(t *testing.T) {
	t.Parallel()
	p := newPublished(t)
	first := p.publish(t, p.holder(t), "one")
	run := p.holder(t)
	p.store.opened = func() {
		p.publish(t, run, "two")
		p.holder(t) // so that no token but the keeping spares it
		if n := p.mustSweep(t); n != (Swept{}) {
			t.Errorf("swept %+v of what was superseded just now", n)
		}
		p.ages(t)
		if n := p.mustSweep(t); n != (Swept{Removed: 1}) {
			t.Errorf("swept %+v, want the first version gone", n)
		}
	}
	if got := p.current(t); got != "two" {
		t.Errorf("read %q, want the next version", got)
	}
	if n := exec(t, p.pool, `select count(*) from pawl.artifact_versions where version = 1 and removed_at is not null`); n != 1 {
		t.Error("the first version isn't marked as removed")
	}
	if err := p.read.Verify(t.Context(), first); !errors.Is(err, ErrArtifactGone) {
		t.Errorf("Verify = %v, want ErrArtifactGone", err)
	}
}
