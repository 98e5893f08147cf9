package jobs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	artifactsEvery   = 2 * time.Minute
	artifactsTimeout = 10 * time.Minute // of one sweep
	artifactsAtOnce  = 500
	artifactsTold    = 5 // errors of one sweep
)

const (
	// Of some files: those that nobody may open any more, with the lock under which their artifact is published. A file whose
	// artifact has no mark isn't ours.
	leftoverSQL = `
select u.file, u.name, u.token, f.lock from unnest($1::text[], $2::text[], $3::bigint[]) u (file, name, token)
  join pawl.fences f on f.target = 'artifact:' || u.name
 where not exists (select from pawl.artifact_versions v where v.file = u.file and (v.superseded_at is null or v.superseded_at > clock_timestamp() - $4::interval))`

	// Whether a token can't pass a guard any more, ever. FOR UPDATE: no guarded transaction of it is open. A row that is locked is no answer.
	overSQL = `
with l as materialized (select token, grant_id from pawl.locks where name = $1 for update skip locked)
select coalesce((select l.token > $2 or l.token = $2 and l.grant_id is null from l), not exists (select from pawl.locks where name = $1))`

	namedSQL = `
select exists (select from pawl.artifacts where file = $1 and name = $2)
    or exists (select from pawl.artifact_versions v where v.file = $1 and (v.superseded_at is null or v.superseded_at > clock_timestamp() - $3::interval))`

	removedSQL = `
update pawl.artifact_versions set removed_at = clock_timestamp() where file = $1 and removed_at is null and superseded_at is not null`

	// What was removed by somebody who died before he could say so.
	unsaidSQL = `
select v.file, v.name, v.token, v.lock from pawl.artifact_versions v
 where v.superseded_at < (select clock_timestamp() - $1::interval) and v.removed_at is null
   and not exists (select from pawl.artifact_versions w where w.file = v.file and w.superseded_at is null)
 order by v.superseded_at limit 1000`

	pointersSQL = `select name, file from pawl.artifacts where name > $1 order by name limit $2`
)

// Swept says what a sweep has done.
type Swept struct {
	Removed int // files
	Left    int // leftovers whose token may still pass a guard, or whose lock somebody has locked
}

type leftover struct {
	file, name string
	token      int64
	lock       string
}

// Sweep removes the files that nobody can need: the bytes of versions superseded longer ago than Keep, and what writers that
// have died left. It asks two things of each, in this order: that its token can't pass a guard any more, and then that no
// pointer names it. It also makes plain names lead to the current versions. Any number may sweep at once.
func (s *Artifacts) Sweep(ctx context.Context) (n Swept, err error) {
	var files []string
	var names []string
	var tokens []int64
	flush := func() error {
		found, err := s.leftovers(ctx, leftoverSQL, files, names, tokens, s.cfg.Keep)
		files, names, tokens = nil, nil, nil
		return errors.Join(err, s.removeAll(ctx, found, &n))
	}
	before := time.Now().Add(-max(s.cfg.Spare, 0))
	err = s.cfg.Store.Files(ctx, func(f StoredFile) error {
		name, token, ok := splitFile(f.File)
		if !ok || s.cfg.Spare > 0 && f.ModTime.After(before) {
			return nil
		}
		files, names, tokens = append(files, f.File), append(names, name), append(tokens, token)
		if len(files) < artifactsAtOnce {
			return nil
		}
		return flush()
	})
	if err == nil {
		err = flush()
	}
	if err != nil {
		return n, err
	}
	unsaid, err := s.leftovers(ctx, unsaidSQL, s.cfg.Keep)
	return n, errors.Join(err, s.removeAll(ctx, unsaid, &n), s.mend(ctx))
}

func (s *Artifacts) leftovers(ctx context.Context, sql string, args ...any) ([]leftover, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	rows, err := s.cfg.Pool.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (l leftover, err error) {
		return l, row.Scan(&l.file, &l.name, &l.token, &l.lock)
	})
}

// removeAll goes on after a file that can't be removed: others can.
func (s *Artifacts) removeAll(ctx context.Context, all []leftover, n *Swept) error {
	var errs []error
	for _, l := range all {
		useless, err := s.useless(ctx, l)
		if err == nil && !useless {
			n.Left++
			continue
		}
		if err == nil {
			err = s.remove(ctx, l)
		}
		if err == nil {
			n.Removed++
		} else if errs = append(errs, fmt.Errorf("jobs: sweep %q: %w", l.file, err)); ctx.Err() != nil {
			break
		}
	}
	return errors.Join(errs[:min(len(errs), artifactsTold)]...)
}

// remove takes a useless file away. That it is useless stays so: its token is over for good, and no other token ever writes
// its name. So no lock is held meanwhile, which on a file system that hangs would cost a live holder its lease.
func (s *Artifacts) remove(ctx context.Context, l leftover) error {
	if err := s.cfg.Store.Remove(ctx, l.file); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := s.cfg.Pool.Exec(ctx, removedSQL, l.file)
	s.cfg.Logger.InfoContext(ctx, "file of an artifact removed", "artifact", l.name, "file", l.file, "lock", l.lock, "token", l.token)
	return err
}

// useless judges one file. The pointers are asked in a statement after the lock's row was taken: who has moved one before
// that has committed.
func (s *Artifacts) useless(ctx context.Context, l leftover) (useless bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err = pgx.BeginTxFunc(ctx, s.cfg.Pool, stepwise(), func(tx pgx.Tx) error {
		var over, named bool
		if err := tx.QueryRow(ctx, overSQL, l.lock, l.token).Scan(&over); err != nil || !over {
			return err
		}
		if err := tx.QueryRow(ctx, namedSQL, l.file, l.name, s.cfg.Keep).Scan(&named); err != nil {
			return err
		}
		useless = !named
		return nil
	})
	return useless, err
}

type pointer struct{ Name, File string }

// mend makes the plain names lead to what the pointers name. What a pointer names may not be in this store, and a plain name
// may be taken by a directory: that is no reason to leave the others.
func (s *Artifacts) mend(ctx context.Context) error {
	var errs []error
	for after := ""; ; {
		all, err := s.pointers(ctx, after)
		if err != nil {
			return err
		}
		for _, p := range all {
			err := s.cfg.Store.Point(ctx, p.Name, p.File)
			if err != nil && !errors.Is(err, fs.ErrNotExist) && len(errs) < artifactsTold {
				errs = append(errs, fmt.Errorf("jobs: plain name of artifact %q: %w", p.Name, err))
			}
			after = p.Name
		}
		if len(all) < artifactsAtOnce || ctx.Err() != nil {
			return errors.Join(errs...)
		}
	}
}

func (s *Artifacts) pointers(ctx context.Context, after string) ([]pointer, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	rows, err := s.cfg.Pool.Query(ctx, pointersSQL, after, artifactsAtOnce)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[pointer])
}

// sweepArtifacts is a turn of the runner's loop, through connections of its own pool.
func (r *Runner) sweepArtifacts(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, artifactsTimeout)
	defer cancel()
	s, err := NewArtifacts(ArtifactsConfig{Pool: r.pool, Store: r.cfg.Artifacts, Keep: r.cfg.ArtifactKeep, Logger: r.log})
	if err == nil {
		_, err = s.Sweep(ctx)
	}
	return jitter(artifactsEvery), err
}
