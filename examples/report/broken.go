package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/jobs"
)

// Ways to publish that lose: the same storm and the same readers find them out. Their workers don't listen to their context
// either, as a worker can't that is paused between its last look and its write.
const (
	renameOnly = "rename"    // a temporary file and a rename over the plain name, as it is often done
	unguarded  = "unguarded" // a name of its own and a pointer, which moves without a guard
)

func broken(variant string, pool *pgxpool.Pool, store *jobs.ArtifactDir, dir string) publish {
	if variant == renameOnly {
		return renames(dir)
	}
	return points(pool, store)
}

func renames(dir string) publish {
	return func(_ context.Context, _ *jobs.Run, name string, write func(io.Writer) error) error {
		target := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil { //nolint:gosec // as a store's
			return err
		}
		f, err := os.CreateTemp(filepath.Dir(target), "."+filepath.Base(name))
		if err != nil {
			return err
		}
		if err := write(f); err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
		return os.Rename(f.Name(), target)
	}
}

const unguardedSQL = `
with moved as (
  insert into pawl.artifacts as a values ($1, 1, $2, $3, $4, $5, $6, '', clock_timestamp())
  on conflict (name) do update set version = a.version + 1, token = excluded.token, hash = excluded.hash, size = excluded.size, file = excluded.file
  returning *
)
insert into pawl.artifact_versions (name, version, lock, token, hash, size, file, holder, run, job, key, revision, operation, at)
select name, version, lock, token, hash, size, file, holder, $7::text::uuid, '', '', 1, gen_random_uuid(), at from moved`

func points(pool *pgxpool.Pool, store *jobs.ArtifactDir) publish {
	return func(ctx context.Context, run *jobs.Run, name string, write func(io.Writer) error) error {
		f, err := store.Create(ctx, name+"."+uuid.NewString()+".tmp")
		if err != nil {
			return err
		}
		sum, size := sha256.New(), &counter{}
		if err := write(io.MultiWriter(f, sum, size)); err != nil {
			return err
		}
		hash := hex.EncodeToString(sum.Sum(nil))
		file := fmt.Sprintf("%s.%d.%s", name, run.Token().Seq, hash[:16])
		if err := f.Seal(ctx, file); err != nil {
			return err
		}
		_, err = pool.Exec(ctx, unguardedSQL, name, run.Token().Lock, run.Token().Seq, hash, size.n, file, run.ID.String())
		return err
	}
}

type counter struct{ n int64 }

func (c *counter) Write(b []byte) (int, error) {
	c.n += int64(len(b))
	return len(b), nil
}
