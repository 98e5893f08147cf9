package jobs

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ArtifactsConfig says where artifacts are. Pool and Store are required.
type ArtifactsConfig struct {
	Pool   *pgxpool.Pool
	Store  ArtifactStore
	Keep   time.Duration // how long the bytes of a superseded version stay; default 24h, at least 1h
	Spare  time.Duration // how old a file must be for [Artifacts.Sweep] to take it for a leftover; default 1h; SpareNothing
	Logger *slog.Logger  // default discards
}

const (
	leastKeep = time.Hour
	keepFix   = "use 1h or more: who has just read the pointer opens the file"
)

// SpareNothing as Spare means that the sweep goes by the tokens alone, as it may.
const SpareNothing time.Duration = -1

// Artifacts reads what runs have published, and sweeps what is left over.
type Artifacts struct{ cfg ArtifactsConfig }

// NewArtifacts returns a reader, or the first field of c that can't be used.
func NewArtifacts(c ArtifactsConfig) (*Artifacts, error) {
	c.Keep = cmp.Or(c.Keep, 24*time.Hour)
	c.Spare = cmp.Or(c.Spare, time.Hour)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	switch {
	case c.Pool == nil:
		return nil, &ConfigError{Field: "Pool", Fix: "give the pool of the database that has the pointers"}
	case c.Store == nil:
		return nil, &ConfigError{Field: "Store", Fix: "give the store that the runs publish to"}
	case c.Keep < leastKeep:
		return nil, &ConfigError{Field: "Keep", Value: c.Keep, Fix: keepFix}
	case c.Spare < 0 && c.Spare != SpareNothing:
		return nil, &ConfigError{Field: "Spare", Value: c.Spare, Fix: "use a positive duration, or SpareNothing"}
	}
	return &Artifacts{c}, nil
}

// ArtifactReader is an artifact's bytes. Read answers [ErrArtifactChanged] in place of the last of them when they are not those
// that were published: who has as many bytes as Size says has the file as it was.
type ArtifactReader struct {
	Artifact
	from io.ReadCloser
	sum  hash.Hash
	size int64
}

const (
	artifactColumns = `v.name, v.version, v.lock, v.token, v.hash, v.size, v.file, v.holder, v.run, v.job, v.key, v.revision, v.at, v.superseded_at, v.removed_at`

	pointerSQL = `
select ` + artifactColumns + ` from pawl.artifacts a join pawl.artifact_versions v using (name, version) where a.name = $1`
)

// Open opens the current version: it asks the pointer, and asks once more if the file has gone meanwhile. Errors:
// [ErrNoArtifact], [ErrArtifactGone]. The caller closes the reader.
func (s *Artifacts) Open(ctx context.Context, name string) (*ArtifactReader, error) {
	for again := false; ; again = true {
		a, err := s.Current(ctx, name)
		if err != nil {
			return nil, err
		}
		r, err := s.OpenVersion(ctx, a)
		if err == nil || again || !errors.Is(err, ErrArtifactGone) {
			return r, err
		}
	}
}

// OpenVersion opens one version, as a list or [Run.Publish] has given it; [ErrArtifactGone] when its bytes aren't kept any more.
func (s *Artifacts) OpenVersion(ctx context.Context, a Artifact) (*ArtifactReader, error) {
	return openArtifact(ctx, s.cfg.Store, a)
}

func openArtifact(ctx context.Context, store ArtifactStore, a Artifact) (*ArtifactReader, error) {
	from, err := store.Open(ctx, a.File)
	if err != nil {
		return nil, missing(a, err)
	}
	return &ArtifactReader{a, from, sha256.New(), 0}, nil
}

// Current is what the pointer names, or [ErrNoArtifact].
func (s *Artifacts) Current(ctx context.Context, name string) (a Artifact, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	rows, err := s.cfg.Pool.Query(ctx, pointerSQL, storable(name))
	if err == nil {
		a, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Artifact])
	}
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return a, fmt.Errorf("%w: %q", ErrNoArtifact, name)
	case err != nil:
		return a, fmt.Errorf("jobs: read artifact %q: %w", name, err)
	}
	timedArtifact(&a)
	return a, nil
}

// Verify reads one version to its end. Errors: [ErrArtifactGone], [ErrArtifactChanged].
func (s *Artifacts) Verify(ctx context.Context, a Artifact) error {
	return sameBytes(ctx, s.cfg.Store, a)
}

func sameBytes(ctx context.Context, store ArtifactStore, a Artifact) error {
	r, err := openArtifact(ctx, store, a)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, r)
	return errors.Join(err, r.Close())
}

// Read implements io.Reader. The last bytes are given only once all are known to be right.
func (r *ArtifactReader) Read(b []byte) (int, error) {
	n, err := r.from.Read(b)
	_, _ = r.sum.Write(b[:n]) // it never fails
	r.size += int64(n)
	ended := errors.Is(err, io.EOF)
	if r.size < r.Size && !ended {
		return n, err
	}
	if r.size != r.Size || hex.EncodeToString(r.sum.Sum(nil)) != r.Hash {
		return 0, fmt.Errorf("%w: %s, version %d: %s has other bytes than the %d that were published", ErrArtifactChanged, r.Name, r.Version, r.File, r.Size)
	}
	return n, err
}

// Close implements io.Closer.
func (r *ArtifactReader) Close() error { return r.from.Close() }
