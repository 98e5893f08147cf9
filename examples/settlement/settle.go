package settlement

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"pawl/fence"
	"pawl/jobs"
)

// run is what settle needs of a *jobs.Run.
type run interface {
	Token() fence.Token
	Tx(ctx context.Context, fn func(pgx.Tx) error) error
	Checkpoint(ctx context.Context, tx pgx.Tx, v any) error
	Resume(v any) (bool, error)
	Progress(done, total int64)
	Complete(ctx context.Context, fn func(pgx.Tx) error) error
	Logger() *slog.Logger
}

// day is what one run settles.
type day struct {
	date     string // of from, in UTC
	from, to time.Time
	run      uuid.UUID

	shard, shards int // shards 0: all of it
}

func newDay(from, to time.Time, id uuid.UUID) day {
	return day{date: from.UTC().Format(time.DateOnly), from: from, to: to, run: id}
}

// part is what one shard settles of the day.
func (d day) part(s jobs.Shard) day {
	d.shard, d.shards = s.Index, s.Count
	return d
}

// progress is the checkpoint: every merchant up to After is settled.
type progress struct {
	After string `json:"after"`
	Batch int    `json:"batch"`
	Done  int64  `json:"done"`
	Total int64  `json:"total"`
}

// settle does a day's batches from the last checkpoint on and completes it
// once the control totals agree.
func (s *Settlement) settle(ctx context.Context, r run, d day) error {
	var at progress
	if _, err := r.Resume(&at); err != nil {
		return fmt.Errorf("settlement: resume %s: %w", d.date, err)
	}
	for more := true; more; {
		var err error
		if at, more, err = s.step(ctx, r, d, at); err != nil {
			return fmt.Errorf("settlement: %s, batch %d: %w", d.date, at.Batch+1, err)
		}
	}
	err := r.Complete(ctx, func(tx pgx.Tx) error {
		if d.shards > 0 { // nobody can tell before all of them are done
			return nil
		}
		return s.control(ctx, tx, r.Logger(), d)
	})
	if err != nil {
		return fmt.Errorf("settlement: complete %s: %w", d.date, err)
	}
	return nil
}

// step settles one batch. Its rows and the checkpoint after it commit
// together, so that whoever resumes neither skips a batch nor repeats one.
func (s *Settlement) step(ctx context.Context, r run, d day, at progress) (next progress, more bool, err error) {
	if err := hook(ctx, s.cfg.Pause, at.Batch+1); err != nil {
		return at, false, err
	}
	err = r.Tx(ctx, func(tx pgx.Tx) error {
		b, err := s.batch(ctx, tx, r.Token(), d, at.After)
		if err != nil {
			return err
		}
		next = progress{After: b.last, Batch: at.Batch + 1, Done: at.Done + b.merchants, Total: b.total}
		more = b.merchants == int64(s.cfg.Batch)
		if b.merchants == 0 {
			next = at
			return nil
		}
		r.Progress(next.Done, next.Total) // commits with the checkpoint
		if err := r.Checkpoint(ctx, tx, next); err != nil {
			return err
		}
		return hook(ctx, s.cfg.Inside, next.Batch)
	})
	if err != nil {
		return at, false, err
	}
	return next, more, nil
}

func hook(ctx context.Context, fn func(context.Context, int) error, batch int) error {
	if fn == nil {
		return nil
	}
	return fn(ctx, batch)
}
