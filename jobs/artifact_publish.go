package jobs

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"pawl/fence"
)

// Publish makes what write writes the current version of the artifact, and returns it. The bytes go to a file that nobody
// sees, with a name that no other version will ever have; then one guarded transaction moves the pointer, and only then
// readers find it. An old holder moves nothing, and never touches a file that is another's. Memory doesn't grow with the
// bytes. When they are those of the current version of this run, nothing changes.
//
// A name belongs to the lock that it was first published under: see CheckArtifactName for what it may be. write is called
// once, outside a transaction, after it has been found that this run may publish the name; a Write fails when ctx has ended.
//
// Errors: [ErrNoStore], an [*ArtifactNameError], the error of write, what the store says, and those of [Run.Tx], with
// [fence.ErrOtherLock] for another lock's name. After any of them the artifact is as it was, but for [fence.ErrUnknown].
func (r *Run) Publish(ctx context.Context, name string, write func(w io.Writer) error) (Artifact, error) {
	a, err := r.publish(ctx, name, write)
	if err != nil {
		return Artifact{}, fmt.Errorf("jobs: publish %q: %w", name, err)
	}
	if err := r.runner.cfg.Artifacts.Point(ctx, a.Name, a.File); err != nil { // the sweep mends it
		r.Logger().WarnContext(ctx, "the plain name doesn't lead to the artifact yet", "artifact", name, "error", err)
	}
	r.Logger().InfoContext(ctx, "published", "artifact", name, "version", a.Version, "size", a.Size)
	return a, nil
}

func (r *Run) publish(ctx context.Context, name string, write func(w io.Writer) error) (a Artifact, err error) {
	store := r.runner.cfg.Artifacts
	if store == nil {
		return a, ErrNoStore
	}
	if err := CheckArtifactName(name); err != nil {
		return a, err
	}
	// Who may not publish it hears so before the work; and the sweep knows from now on whose the leftovers are.
	err = r.Tx(ctx, func(tx pgx.Tx) error { return fence.Check(ctx, tx, r.token, artifactTarget(name)) })
	if err != nil {
		return a, err
	}
	a = Artifact{
		Name: name, Lock: r.token.Lock, Token: r.token.Seq, Holder: r.Holder(), Run: r.ID, Job: r.Job, Key: r.Period.Key, Revision: r.Revision,
	}
	if err := r.store(ctx, store, &a, write); err != nil {
		return a, err
	}
	return a, r.point(ctx, &a)
}

// store writes the file and gives it the name that only these bytes have.
func (r *Run) store(ctx context.Context, store ArtifactStore, a *Artifact, write func(w io.Writer) error) error {
	f, err := store.Create(ctx, tempOfArtifact(a.Name, a.Token))
	if err != nil {
		return err
	}
	defer func() { _ = f.Discard() }()
	w := &artifactWriter{ctx: ctx, to: bufio.NewWriterSize(f, 64<<10), sum: sha256.New()}
	if err := write(w); err != nil {
		return err
	}
	if err := w.to.Flush(); err != nil {
		return err
	}
	if err := r.alive(ctx); err != nil { // the rest would be in vain
		r.refused(ctx, err, "publish")
		return err
	}
	a.Size, a.Hash = w.size, hex.EncodeToString(w.sum.Sum(nil))
	a.File = fileOfArtifact(a.Name, a.Token, a.Hash)
	err = f.Seal(ctx, a.File)
	if errors.Is(err, fs.ErrExist) { // this run has published the same before
		return sameBytes(ctx, store, *a)
	}
	return err
}

// artifactWriter counts and sums what it passes on, as long as its context lives.
type artifactWriter struct {
	ctx  context.Context //nolint:containedctx // it lives as long as the call
	to   *bufio.Writer
	sum  hash.Hash
	size int64
}

func (w *artifactWriter) Write(b []byte) (int, error) {
	if w.ctx.Err() != nil {
		return 0, context.Cause(w.ctx)
	}
	n, err := w.to.Write(b)
	_, _ = w.sum.Write(b[:n]) // it never fails
	w.size += int64(n)
	return n, err
}

const (
	// The bytes of the version before are kept for a while: somebody may be about to open them.
	pointSQL = `
with moved as (
  insert into pawl.artifacts as a (name, version, lock, token, hash, size, file, holder, at)
  values ($1, 1, $2, $3, $4, $5, $6, $7, clock_timestamp())
  on conflict (name) do update
     set version = a.version + 1, lock = excluded.lock, token = excluded.token, hash = excluded.hash, size = excluded.size,
         file = excluded.file, holder = excluded.holder, at = excluded.at
   where a.file <> excluded.file
  returning a.version, a.at
), superseded as (
  update pawl.artifact_versions v set superseded_at = m.at from moved m where v.name = $1 and v.version = m.version - 1
)
insert into pawl.artifact_versions (name, version, lock, token, hash, size, file, holder, run, job, key, revision, operation, at)
select $1, m.version, $2, $3, $4, $5, $6, $7, r.id, r.job, r.key, r.revision, $9::text::uuid, m.at
  from moved m cross join pawl.runs r where r.id = $8::text::uuid
returning version, at`

	currentSQL = `select version, at from pawl.artifacts where name = $1 and file = $2`

	askArtifactSQL = `
select version, at from pawl.artifact_versions where name = $1 and file = $2 and (operation = $3::text::uuid or superseded_at is null)
 order by version desc limit 1`
)

// point moves the pointer to the file, under the guard and the mark.
func (r *Run) point(ctx context.Context, a *Artifact) error {
	operation := uuid.NewString()
	err := r.Tx(ctx, func(tx pgx.Tx) error {
		if err := fence.Check(ctx, tx, r.token, artifactTarget(a.Name)); err != nil {
			return err
		}
		err := tx.QueryRow(ctx, pointSQL, a.Name, a.Lock, a.Token, a.Hash, a.Size, a.File, a.Holder, r.ID.String(), operation).Scan(&a.Version, &a.At)
		if errors.Is(err, pgx.ErrNoRows) {
			err = tx.QueryRow(ctx, currentSQL, a.Name, a.File).Scan(&a.Version, &a.At)
		}
		return err
	})
	if errors.Is(err, fence.ErrUnknown) {
		err = r.askArtifact(ctx, a, operation, err)
	}
	timedArtifact(a)
	return err
}

// askArtifact turns an unknown outcome into a known one: the guard keeps the lock's row until its transaction has ended.
func (r *Run) askArtifact(ctx context.Context, a *Artifact, operation string, unknown error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	var token int64
	err := r.runner.pool.QueryRow(ctx, waitGuardSQL, r.token.Lock).Scan(&token)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return errors.Join(unknown, err)
	}
	var at time.Time
	switch err := r.runner.pool.QueryRow(ctx, askArtifactSQL, a.Name, a.File, operation).Scan(&a.Version, &at); {
	case errors.Is(err, pgx.ErrNoRows):
		return fmt.Errorf("the pointer was not moved, it may be tried again: %w", ErrNotCommitted)
	case err != nil:
		return errors.Join(unknown, err)
	}
	a.At = at
	return nil
}
