package jobs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/google/uuid"
)

// ArtifactDir is a store in a directory, on a local disk or on a file system that all workers and readers share. The file
// system must know hard links. What is written is synced, and so is the directory that it is in, before it counts.
type ArtifactDir struct{ root *os.Root }

// NewArtifactDir opens the directory and makes it if it is absent; its parent must be there. Nothing outside it is ever
// touched, whatever links it holds.
func NewArtifactDir(dir string) (*ArtifactDir, error) {
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) { //nolint:gosec // what is published is for reading
		return nil, fmt.Errorf("jobs: artifact directory: %w", err)
	}
	return OpenArtifactDir(dir)
}

// OpenArtifactDir opens a directory that must be there, as who only reads does.
func OpenArtifactDir(dir string) (*ArtifactDir, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("jobs: artifact directory: %w", err)
	}
	return &ArtifactDir{root}, nil
}

// Close gives the directory back.
func (d *ArtifactDir) Close() error { return d.root.Close() }

// Create implements [ArtifactStore].
func (d *ArtifactDir) Create(_ context.Context, temp string) (ArtifactWriter, error) {
	if err := d.makeDirs(path.Dir(temp)); err != nil {
		return nil, err
	}
	f, err := d.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o444)
	if err != nil {
		return nil, err
	}
	return &dirFile{d, f, temp}, nil
}

// Open implements [ArtifactStore].
func (d *ArtifactDir) Open(_ context.Context, file string) (io.ReadCloser, error) {
	return d.root.Open(file)
}

// Files implements [ArtifactStore].
func (d *ArtifactDir) Files(ctx context.Context, yield func(StoredFile) error) error {
	return fs.WalkDir(d.root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist): // it went while we looked
			return nil
		case errors.Is(err, fs.ErrPermission) && name != "." && e.IsDir(): // none that we have made
			return fs.SkipDir
		case err != nil:
			return err
		case !e.Type().IsRegular():
			return ctx.Err()
		}
		info, err := e.Info()
		if err != nil {
			return ignoreAbsent(err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		return yield(StoredFile{name, info.ModTime()})
	})
}

// Remove implements [ArtifactStore].
func (d *ArtifactDir) Remove(_ context.Context, file string) error {
	return ignoreAbsent(d.root.Remove(file))
}

// Point implements [ArtifactStore]: the plain name is another link to the file.
func (d *ArtifactDir) Point(_ context.Context, name, file string) error {
	to, err := d.root.Stat(file)
	if err != nil {
		return err
	}
	if at, err := d.root.Lstat(name); err == nil && os.SameFile(at, to) {
		return nil // a rename onto itself would leave the other link
	}
	link := path.Join(path.Dir(name), "."+path.Base(name)+".0."+strings.ReplaceAll(uuid.NewString(), "-", "")+".tmp")
	if err := d.root.Link(file, link); err != nil {
		return err
	}
	if err := d.root.Rename(link, name); err != nil {
		return errors.Join(err, d.root.Remove(link))
	}
	return ignoreAbsent(d.root.Remove(link)) // of two who point at once the second renames onto itself
}

// makeDirs makes what is absent of a directory's path, so that it survives a crash.
func (d *ArtifactDir) makeDirs(dir string) error {
	at := "."
	for part := range strings.SplitSeq(dir, "/") {
		if part == "." {
			continue
		}
		next := path.Join(at, part)
		switch err := d.root.Mkdir(next, 0o755); {
		case err == nil:
			if err := d.sync(at); err != nil {
				return err
			}
		case !errors.Is(err, fs.ErrExist):
			return err
		}
		at = next
	}
	return nil
}

// sync makes the names in a directory survive a crash.
func (d *ArtifactDir) sync(dir string) error {
	f, err := d.root.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// dirFile is a file under its temporary name.
type dirFile struct {
	dir  *ArtifactDir
	file *os.File
	temp string
}

func (f *dirFile) Write(b []byte) (int, error) { return f.file.Write(b) }

// Seal links and doesn't rename: a link never replaces what is there.
func (f *dirFile) Seal(_ context.Context, file string) error {
	if err := f.file.Sync(); err != nil {
		return err
	}
	if err := f.file.Close(); err != nil {
		return err
	}
	linked := f.dir.root.Link(f.temp, file)
	if linked != nil && !errors.Is(linked, fs.ErrExist) {
		return linked
	}
	if err := f.dir.root.Remove(f.temp); err != nil {
		return err
	}
	if err := f.dir.sync(path.Dir(file)); err != nil { // also for who came before and died in between
		return err
	}
	return linked
}

func (f *dirFile) Discard() error {
	_ = f.file.Close()
	return ignoreAbsent(f.dir.root.Remove(f.temp))
}

func ignoreAbsent(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
