package jobs

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"
)

var errClosed = errors.New("jobs: the runner has stopped")

// batcher turns concurrent single requests into few calls of exec: whatever waits when an executor becomes free
// goes with it. No timer: a lone request never waits for company. A batch that the server refuses is asked for again one
// by one, so that a request suffers for itself alone.
type batcher[Q, R any] struct {
	calls chan call[Q, R]
	exec  func(context.Context, []Q) ([]R, error)
	most  int
	done  sync.WaitGroup

	mu     sync.RWMutex // over sending to calls and closing it
	closed bool
}

type call[Q, R any] struct {
	request Q
	answer  chan answer[R]
}

type answer[R any] struct {
	result R
	err    error
}

func newBatcher[Q, R any](executors, most int, exec func(context.Context, []Q) ([]R, error)) *batcher[Q, R] {
	b := &batcher[Q, R]{calls: make(chan call[Q, R], most), exec: exec, most: most}
	for range executors {
		b.done.Go(b.loop)
	}
	return b
}

// close waits for the executors. From then on do answers errClosed: a function that outlived the shutdown may still end.
func (b *batcher[Q, R]) close() {
	b.mu.Lock()
	b.closed = true
	close(b.calls)
	b.mu.Unlock()
	b.done.Wait()
}

// do answers when the request has been executed, however long that takes: exec has a deadline of its own, and an
// abandoned request would start a run with nobody behind it.
func (b *batcher[Q, R]) do(q Q) (r R, err error) {
	c := call[Q, R]{q, make(chan answer[R], 1)}
	b.mu.RLock()
	if b.closed {
		b.mu.RUnlock()
		return r, errClosed
	}
	b.calls <- c
	b.mu.RUnlock()
	a := <-c.answer
	return a.result, a.err
}

func (b *batcher[Q, R]) loop() {
	for first := range b.calls {
		batch := b.gather(first)
		results, err := b.try(batch)
		if len(batch) > 1 && refused(err) {
			for _, c := range batch { // not here: those that come next don't wait for it
				b.done.Go(func() {
					results, err := b.try([]call[Q, R]{c})
					answerAll([]call[Q, R]{c}, results, err)
				})
			}
			continue
		}
		answerAll(batch, results, err)
	}
}

func (b *batcher[Q, R]) try(batch []call[Q, R]) ([]R, error) {
	requests := make([]Q, len(batch))
	for i, c := range batch {
		requests[i] = c.request
	}
	return b.exec(context.Background(), requests)
}

func answerAll[Q, R any](batch []call[Q, R], results []R, err error) {
	for i, c := range batch {
		a := answer[R]{err: err}
		if err == nil {
			a.result = results[i]
		}
		c.answer <- a
	}
}

// refused reports whether the server has said that it did not do it; without such a word it may have.
func refused(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.SeverityUnlocalized == "ERROR" && !strings.HasPrefix(pg.Code, "08")
}

func (b *batcher[Q, R]) gather(first call[Q, R]) []call[Q, R] {
	batch := []call[Q, R]{first}
	for len(batch) < b.most {
		select {
		case c, ok := <-b.calls:
			if !ok {
				return batch
			}
			batch = append(batch, c)
		default:
			return batch
		}
	}
	return batch
}
