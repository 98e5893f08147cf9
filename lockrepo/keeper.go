package lockrepo

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"
)

const (
	watchEvery = time.Second // the watchdog looks at least this often
	maxBeat    = 1000        // leases in one statement: it holds their rows while it runs
)

// heartbeat is what the keeper asks of the database.
type heartbeat struct {
	// batch renews; it skips rows that are locked. out[i] is about ls[i], now is
	// the database's clock, zero if nothing was renewed.
	batch func(ctx context.Context, ls []Lease) (out []verdict, now time.Time, err error)
	// one renews one lease and waits for its row.
	one   func(ctx context.Context, l Lease) (out verdict, now time.Time, err error)
	close func()
}

// keeper renews all leases of a process. Three goroutines: the watchdog looks
// at the clocks and ends contexts, the beater sends the batches, and the asker
// asks for single leases whose row is locked. A lease costs none of its own.
type keeper struct {
	beat  heartbeat
	m     *metrics
	log   *slog.Logger
	clock func() Instant

	stop  context.CancelFunc
	done  <-chan struct{}
	start func()        // starts the goroutines, once
	wake  chan struct{} // for the watchdog: something is due earlier
	beats chan struct{} // for the beater: something is due
	asks  chan struct{} // for the asker
	busy  sync.WaitGroup

	mu     sync.Mutex
	all    []*Kept
	ready  []*Kept       // due, not yet sent
	locked []*Kept       // skipped by a batch
	next   time.Time     // when the watchdog looks again
	least  time.Duration // the shortest TTL at its last look
	closed bool
	away   bool     // the last beat had no answer
	told   struct { // the last answer about the database's clock
		now  time.Time
		sent Instant
	}
}

func newKeeper(beat heartbeat, m *metrics, log *slog.Logger) *keeper {
	ctx, stop := context.WithCancel(context.Background())
	k := &keeper{
		beat: beat, m: m, log: log, clock: Now, stop: stop, done: ctx.Done(),
		wake: make(chan struct{}, 1), beats: make(chan struct{}, 1), asks: make(chan struct{}, 1),
	}
	k.start = sync.OnceFunc(func() {
		k.busy.Go(k.watch)
		k.busy.Go(func() { k.send(ctx) })
		k.busy.Go(func() { k.ask(ctx) })
	})
	return k
}

// close ends the goroutines and waits for them.
func (k *keeper) close() {
	k.mu.Lock()
	k.closed = true
	for _, h := range slices.Clone(k.all) {
		k.finish(h, ErrClosed)
	}
	k.mu.Unlock()
	k.stop()
	k.busy.Wait()
	k.beat.close()
}

func (k *keeper) keep(ctx context.Context, l Lease) (context.Context, *Kept) {
	ctx, end := context.WithCancelCause(ctx)
	h := &Kept{k: k, end: end, lease: l, born: l.sent, at: -1, due: l.sent.at.Add(l.TTL / 3)}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		k.finish(h, ErrClosed)
		return ctx, h
	}
	h.at, k.all = len(k.all), append(k.all, h)
	if k.judge(h, k.clock()); h.at < 0 {
		return ctx, h
	}
	k.start()
	if first := k.clock().at.Add(min(watchEvery, l.TTL/10)); first.Before(h.due) {
		k.poke(first)
	} else {
		k.poke(h.due)
	}
	return ctx, h
}

// poke makes the watchdog look at t, if it wouldn't look before.
func (k *keeper) poke(t time.Time) {
	if !k.next.IsZero() && !t.Before(k.next) {
		return
	}
	k.next = t
	signal(k.wake)
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// drop takes h out of the set.
func (k *keeper) drop(h *Kept) {
	if h.at < 0 {
		return
	}
	h.tell()
	last := len(k.all) - 1
	k.all[h.at] = k.all[last]
	k.all[h.at].at = h.at
	k.all[last] = nil
	k.all, h.at = k.all[:last], -1
}

// finish ends h as lost.
func (k *keeper) finish(h *Kept, cause error) {
	if h.loss != nil {
		return
	}
	h.loss = cause
	k.drop(h)
	h.end(cause)
	k.m.lost(cause, k.clock().proven(h.born))
}
