package jobs

import (
	"context"
	"io"
	"time"
)

// ArtifactStore keeps the bytes of artifacts. It need not know of tokens: a file's name is never used for other bytes, so
// that no writer can take another's away, and which file is the artifact the database says. What the protocol needs of one:
//
//   - Seal makes a file appear whole or not at all, and fails with fs.ErrExist if the name is taken. An object store does
//     it with a conditional put (If-None-Match: *).
//   - What Seal has returned for stays, whatever crashes.
//   - Who opens a file after Seal has returned, on any machine, finds it.
//
// Names are relative, with / between their parts. [ArtifactDir] is the one for a local or a shared directory.
type ArtifactStore interface {
	// Create begins a file under a temporary name.
	Create(ctx context.Context, temp string) (ArtifactWriter, error)
	// Open reads a file; an absent one is fs.ErrNotExist.
	Open(ctx context.Context, file string) (io.ReadCloser, error)
	// Files calls yield for every file, temporary ones too, until it returns an error.
	Files(ctx context.Context, yield func(StoredFile) error) error
	// Remove deletes a file; an absent one is no error.
	Remove(ctx context.Context, file string) error
	// Point makes the plain name lead to the file, where a store can: it is a convenience that nothing relies on.
	Point(ctx context.Context, name, file string) error
}

// ArtifactWriter is a file that isn't there for anybody else yet.
type ArtifactWriter interface {
	io.Writer
	// Seal gives the file its name for ever. When it returns nil or fs.ErrExist what has the name is durable; with
	// fs.ErrExist it is what was there before.
	Seal(ctx context.Context, file string) error
	// Discard removes the temporary file. After Seal it leaves the sealed one alone.
	Discard() error
}

// StoredFile is one file of a store.
type StoredFile struct {
	File    string
	ModTime time.Time
}
