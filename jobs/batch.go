package jobs

import (
	"context"
	"sync"
)

// batcher turns concurrent single requests into few calls of exec: whatever waits when an executor becomes free
// goes with it. No timer: a lone request never waits for company.
type batcher[Q, R any] struct {
	calls chan call[Q, R]
	exec  func(context.Context, []Q) ([]R, error)
	most  int
	done  sync.WaitGroup
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

// close waits for the executors. Nobody may call do any more.
func (b *batcher[Q, R]) close() {
	close(b.calls)
	b.done.Wait()
}

// do answers when the request has been executed, however long that takes: exec has a deadline of its own, and an
// abandoned request would start a run with nobody behind it.
func (b *batcher[Q, R]) do(q Q) (R, error) {
	c := call[Q, R]{q, make(chan answer[R], 1)}
	b.calls <- c
	a := <-c.answer
	return a.result, a.err
}

func (b *batcher[Q, R]) loop() {
	for first := range b.calls {
		batch := b.gather(first)
		requests := make([]Q, len(batch))
		for i, c := range batch {
			requests[i] = c.request
		}
		results, err := b.exec(context.Background(), requests)
		for i, c := range batch {
			a := answer[R]{err: err}
			if err == nil {
				a.result = results[i]
			}
			c.answer <- a
		}
	}
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
