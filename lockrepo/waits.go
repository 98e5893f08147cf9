package lockrepo

import (
	"context"
	"sync"
	"time"
)

// waits are the callers of this process that wait for a lock. While there is
// one, a connection listens for all of them.
type waits struct {
	beside func(f func(ctx context.Context)) // runs f until the Repo closes
	listen func(ctx context.Context)         // tells of releases until ctx ends
	poll   func() time.Duration              // how long a waiter that hears nothing lets pass

	mu   sync.Mutex
	all  map[chan struct{}]string // the lock that each waits for
	stop context.CancelFunc       // ends the listener; nil: there is none
}

// join returns what says that lock may be free, until leave is called.
func (w *waits) join(lock string) (released <-chan struct{}, leave func()) {
	c := make(chan struct{}, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all == nil {
		w.all = map[chan struct{}]string{}
	}
	w.all[c] = lock
	if w.stop == nil {
		own, stop := context.WithCancel(context.Background())
		w.stop = stop
		w.beside(func(ctx context.Context) {
			defer context.AfterFunc(ctx, stop)()
			w.listen(own)
		})
	}
	return c, func() { w.leave(c) }
}

func (w *waits) leave(c chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.all, c)
	if len(w.all) == 0 {
		w.stop()
		w.stop = nil
	}
}

// tell wakes those who wait for lock; empty: all.
func (w *waits) tell(lock string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c, l := range w.all {
		if lock == "" || l == lock {
			signal(c)
		}
	}
}

const listenAgain = time.Second // after a connection broke

// listen hears of releases. Behind a pooler it can't: then waiters only ask.
func (r *Repo) listen(ctx context.Context) {
	n := &line{cfg: r.cfg.Pool.Config(), m: r.m, name: "pawl waiting"}
	defer n.close() //nolint:contextcheck // its farewell has a time of its own
	for {
		err := r.hear(ctx, n)
		if ctx.Err() != nil || n.pooled != nil && *n.pooled {
			return
		}
		r.cfg.Logger.WarnContext(ctx, "can't listen for releases, waiters ask now and then", "error", err)
		again := time.NewTimer(listenAgain)
		select {
		case <-again.C:
		case <-ctx.Done():
		}
		again.Stop()
	}
}

func (r *Repo) hear(ctx context.Context, n *line) error {
	if err := n.connect(ctx); err != nil || *n.pooled {
		return err
	}
	if _, err := n.conn.Exec(ctx, "listen pawl_released"); err != nil {
		return err
	}
	r.waits.tell("") // what was released until now, nobody was told of
	for {
		told, err := n.conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		r.waits.tell(told.Payload)
	}
}
