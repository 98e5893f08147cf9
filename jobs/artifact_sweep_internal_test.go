package jobs

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pawl/fence"
)

// Attack: A's rename puts the old version back under the plain name.
func TestAPlainNameThatIsWrongIsMended(t *testing.T) {
	t.Parallel()
	p := newPublished(t)
	run := p.holder(t)
	old := p.publish(t, run, "old")
	p.publish(t, run, "new")
	plain := func() string {
		b, err := os.ReadFile(filepath.Join(p.dir, "sub", "report.csv"))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if got := plain(); got != "new" {
		t.Errorf("the plain name has %q", got)
	}
	if err := p.store.Point(t.Context(), "sub/report.csv", old.File); err != nil {
		t.Fatal(err)
	}
	if got := plain(); got != "old" {
		t.Fatalf("the plain name has %q", got)
	}
	p.mustSweep(t)
	if got := plain(); got != "new" {
		t.Errorf("after the sweep the plain name has %q", got)
	}
	if got := p.files(t); len(got) != 2 {
		t.Errorf("files %q: pointing has left something", got)
	}
}

// A name that is a directory of another artifact's has no plain name. That is no reason to leave the others.
func TestAPlainNameThatCannotBeIsNoReasonToLeaveTheOthers(t *testing.T) {
	t.Parallel()
	p := newPublished(t)
	run := p.holder(t)
	p.publish(t, run, "one")
	for _, name := range []string{"sub", "z"} {
		if _, err := run.Publish(t.Context(), name, says(name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(p.dir, "z")); err != nil {
		t.Fatal(err)
	}
	if _, err := p.read.Sweep(t.Context()); err == nil || !strings.Contains(err.Error(), `"sub"`) {
		t.Errorf("Sweep = %v, want the name that can't be", err)
	}
	if b, err := os.ReadFile(filepath.Join(p.dir, "z")); err != nil || string(b) != "z" {
		t.Errorf("z has %q, %v", b, err)
	}
	r, err := p.read.Open(t.Context(), "sub")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

func TestANameBelongsToTheLockThatFirstPublishedIt(t *testing.T) {
	t.Parallel()
	p := newPublished(t)
	exec(t, p.pool, `insert into pawl.fences (target, lock, last_token) values ('artifact:sub/report.csv', 'another', 1) returning 1`)
	_, err := p.holder(t).Publish(t.Context(), "sub/report.csv", func(io.Writer) error { t.Error("it was written"); return nil })
	if !errors.Is(err, fence.ErrOtherLock) {
		t.Errorf("Publish = %v, want ErrOtherLock", err)
	}
}

func TestTheSweepLeavesWhatIsNotOurs(t *testing.T) {
	t.Parallel()
	p := newPublished(t)
	p.publish(t, p.holder(t), "one")
	for _, name := range []string{"notes.txt", "photo.1.0123456789abcdef", ".hidden.1.a.tmp", "sub/report.csv.old", "sub/report.csv.x.0123456789abcdef"} {
		if err := os.WriteFile(filepath.Join(p.dir, name), []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if n := p.mustSweep(t); n.Removed != 0 {
		t.Errorf("swept %+v", n)
	}
	if got := p.files(t); len(got) != 6 {
		t.Errorf("files %q", got)
	}
}

func TestYoungFilesAreSpared(t *testing.T) {
	t.Parallel()
	p := newPublished(t)
	run := p.holder(t)
	p.store.sealed = func() { p.publish(t, p.holder(t), "new") }
	if _, err := run.Publish(t.Context(), "sub/report.csv", says("old")); err == nil {
		t.Fatal("an old holder has published")
	}
	careful, err := NewArtifacts(ArtifactsConfig{Pool: p.pool, Store: p.store})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := careful.Sweep(t.Context()); err != nil || n.Removed != 0 {
		t.Errorf("at once swept %+v, %v", n, err)
	}
	for _, f := range p.files(t) {
		if err := os.Chtimes(filepath.Join(p.dir, f), time.Time{}, time.Now().Add(-70*time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := careful.Sweep(t.Context()); err != nil || n.Removed != 1 {
		t.Errorf("after an hour swept %+v, %v", n, err)
	}
}

func TestWhoLostTheReplyOfThePointerAsksForIt(t *testing.T) {
	t.Parallel()
	p := newPublished(t)
	run := p.holder(t)
	a := p.publish(t, run, "one")
	lost := Artifact{Name: a.Name, File: a.File}
	if err := run.askArtifact(t.Context(), &lost, run.ID.String(), fence.ErrUnknown); err != nil || lost.Version != 1 || lost.At.IsZero() {
		t.Errorf("a committed pointer = %v, version %d", err, lost.Version)
	}
	lost.File = "sub/report.csv.1.0123456789abcdef"
	if err := run.askArtifact(t.Context(), &lost, run.ID.String(), fence.ErrUnknown); !errors.Is(err, ErrNotCommitted) {
		t.Errorf("a pointer that was not moved = %v, want ErrNotCommitted", err)
	}
}

func TestAWriterThatFailsOrIsCutOffLeavesNothing(t *testing.T) {
	t.Parallel()
	p := newPublished(t)
	run := p.holder(t)
	boom := errors.New("boom")
	ctx, cancel := context.WithCancelCause(t.Context())
	for name, write := range map[string]func(w io.Writer) error{
		"failed": func(w io.Writer) error { return errors.Join(says("half")(w), boom) },
		"cut off": func(w io.Writer) error {
			cancel(boom)
			return says("late")(w)
		},
	} {
		c := t.Context()
		if name == "cut off" {
			c = ctx
		}
		if _, err := run.Publish(c, "sub/report.csv", write); !errors.Is(err, boom) {
			t.Errorf("%s: Publish = %v", name, err)
		}
	}
	if got := p.files(t); len(got) != 0 {
		t.Errorf("files %q are left", got)
	}
}

func TestChangedBytesAreNotReadToTheEnd(t *testing.T) {
	t.Parallel()
	p := newPublished(t)
	a := p.publish(t, p.holder(t), "one")
	file := filepath.Join(p.dir, a.File)
	if err := os.Chmod(file, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"eno", "on", "one "} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := p.read.Open(t.Context(), a.Name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(r); !errors.Is(err, ErrArtifactChanged) {
			t.Errorf("%q: read to the end: %v", text, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if err := p.read.Verify(t.Context(), a); !errors.Is(err, ErrArtifactChanged) {
			t.Errorf("%q: Verify = %v", text, err)
		}
	}
}

func TestASealedFileIsNeverReplaced(t *testing.T) {
	t.Parallel()
	d, err := NewArtifactDir(filepath.Join(t.TempDir(), "store"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	for i, text := range []string{"first", "second"} {
		w, err := d.Create(t.Context(), "a/b/.c.1.x.tmp")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, text); err != nil {
			t.Fatal(err)
		}
		if err := w.Seal(t.Context(), "a/b/c"); i == 0 && err != nil || i == 1 && !errors.Is(err, fs.ErrExist) {
			t.Errorf("Seal %d = %v", i, err)
		}
		if err := w.Discard(); err != nil {
			t.Error(err)
		}
	}
	r, err := d.Open(t.Context(), "a/b/c")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	if b, err := io.ReadAll(r); err != nil || string(b) != "first" {
		t.Errorf("read %q, %v", b, err)
	}
}

func TestTheStoreNeverLeavesItsDirectory(t *testing.T) {
	t.Parallel()
	outside, inside := t.TempDir(), t.TempDir()
	if err := os.Symlink(outside, filepath.Join(inside, "link")); err != nil {
		t.Fatal(err)
	}
	d, err := NewArtifactDir(inside)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	for _, temp := range []string{"link/.a.1.x.tmp", "../.a.1.x.tmp", "/.a.1.x.tmp"} {
		if _, err := d.Create(t.Context(), temp); err == nil {
			t.Errorf("%s was created", temp)
		}
	}
	if left, err := os.ReadDir(outside); err != nil || len(left) != 0 {
		t.Errorf("outside there is %v, %v", left, err)
	}
}

func TestNamesOfArtifactsAreCheckedBeforeAnythingIsDone(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{
		"", "/a", "a/", "a//b", "..", "a/../b", ".a", "a/.b", "-a", "a b", "a\x00", "ä", "a\\b", strings.Repeat("a", 181), "a.12.0123456789abcdef", "C:a", "a\n",
	} {
		var wrong *ArtifactNameError
		if err := CheckArtifactName(bad); !errors.As(err, &wrong) || !errors.Is(err, ErrArtifactName) {
			t.Errorf("%q = %v", bad, err)
		}
	}
	hash := strings.Repeat("0123456789abcdef", 4)
	for _, good := range []string{"a", "A_1-b.csv", "statements/2026-09/acme.csv", "a.12", strings.Repeat("a", 180)} {
		if err := CheckArtifactName(good); err != nil {
			t.Errorf("%q = %v", good, err)
		}
		for _, file := range []string{fileOfArtifact(good, 42, hash), tempOfArtifact(good, 42)} {
			if name, token, ok := splitFile(file); !ok || name != good || token != 42 {
				t.Errorf("%s is split into %q and %d, %t", file, name, token, ok)
			}
		}
	}
	p := newPublished(t)
	if _, err := p.holder(t).Publish(t.Context(), "../x", says("x")); !errors.Is(err, ErrArtifactName) {
		t.Errorf("Publish = %v", err)
	}
	p.cfg.Artifacts = nil
	if _, err := p.holder(t).Publish(t.Context(), "x", says("x")); !errors.Is(err, ErrNoStore) {
		t.Errorf("Publish without a store = %v", err)
	}
}

func TestArtifactsAreListedWithTheirVersions(t *testing.T) {
	t.Parallel()
	p := newPublished(t)
	run := p.holder(t)
	p.publish(t, run, "one")
	p.publish(t, run, "two")
	if _, err := run.Publish(t.Context(), "other", says("x")); err != nil {
		t.Fatal(err)
	}
	h := NewHistory(p.pool)
	names := func(f ArtifactFilter) (out []string) {
		t.Helper()
		all, err := h.Artifacts(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range all {
			out = append(out, a.Name)
		}
		return out
	}
	for _, c := range []struct {
		f    ArtifactFilter
		want []string
	}{
		{ArtifactFilter{}, []string{"other", "sub/report.csv"}},
		{ArtifactFilter{Prefix: "sub/"}, []string{"sub/report.csv"}},
		{ArtifactFilter{Job: "j", Limit: 1}, []string{"other"}},
		{ArtifactFilter{After: "other"}, []string{"sub/report.csv"}},
		{ArtifactFilter{Job: "k"}, nil},
	} {
		if got := names(c.f); !slices.Equal(got, c.want) {
			t.Errorf("%+v lists %q, want %q", c.f, got, c.want)
		}
	}
	all, err := h.ArtifactVersions(t.Context(), "sub/report.csv", 0, 0)
	if err != nil || len(all) != 2 || all[0].Version != 2 || all[0].SupersededAt != nil || all[1].SupersededAt == nil || all[1].Job != "j" || all[1].Key != "1" {
		t.Errorf("versions %+v, %v", all, err)
	}
	if all, err = h.ArtifactVersions(t.Context(), "sub/report.csv", 2, 0); err != nil || len(all) != 1 {
		t.Errorf("versions before the second %+v, %v", all, err)
	}
}
