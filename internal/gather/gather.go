package gather

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// ErrClosed is the answer to a request after [Gatherer.Close].
var ErrClosed = errors.New("gather: what it asked for others has stopped")

// Gatherer answers requests Q with answers R. One call is on its way at a time, so that requests gather behind it; another
// one is sent when many wait, or when it takes longer than usual.
type Gatherer[Q, R any] struct {
	exec        func(context.Context, []Q) ([]R, error)
	calls, most int

	mu      sync.Mutex
	busy    int // calls on their way
	waiting []request[Q, R]
	late    *time.Timer // runs while some wait
	closed  bool
	done    sync.WaitGroup
}

type request[Q, R any] struct {
	q      Q
	answer chan answer[R]
}

type answer[R any] struct {
	result R
	err    error
}

// New returns a Gatherer that has at most so many calls of exec on their way. exec gets at most most requests, answers them
// in their order, and has a deadline of its own: only a lone request's context reaches it.
func New[Q, R any](calls, most int, exec func(context.Context, []Q) ([]R, error)) *Gatherer[Q, R] {
	return &Gatherer[Q, R]{calls: calls, most: most, exec: exec}
}

// Close waits for all requests. From then on Do answers [ErrClosed].
func (g *Gatherer[Q, R]) Close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.done.Wait()
}

// Waiting is how many requests are not on their way yet.
func (g *Gatherer[Q, R]) Waiting() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.waiting)
}

// Do answers when the request has been executed. If ctx ends before, its error is the answer: a request that still waits is
// withdrawn, one that is on its way may be executed all the same.
func (g *Gatherer[Q, R]) Do(ctx context.Context, q Q) (r R, err error) {
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return r, ErrClosed
	}
	g.done.Add(1)
	if g.busy == 0 { // alone: in the caller's goroutine, as if nothing were between
		g.busy++
		g.mu.Unlock()
		defer g.done.Done()
		defer g.next()
		return g.one(ctx, q)
	}
	me := request[Q, R]{q, make(chan answer[R], 1)}
	g.waiting = append(g.waiting, me)
	switch {
	case len(g.waiting) >= enough && g.busy < g.calls:
		g.send()
	case len(g.waiting) == 1:
		g.late = time.AfterFunc(usual, g.pass)
	}
	g.mu.Unlock()
	select {
	case a := <-me.answer:
		return a.result, a.err
	case <-ctx.Done():
		g.withdraw(me)
		return r, ctx.Err()
	}
}

// withdraw forgets a request that isn't on its way yet: what it would be granted later would be nobody's.
func (g *Gatherer[Q, R]) withdraw(me request[Q, R]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.IndexFunc(g.waiting, func(r request[Q, R]) bool { return r.answer == me.answer }); i >= 0 {
		g.waiting = slices.Delete(g.waiting, i, i+1)
		g.done.Done()
	}
}

const (
	enough = 24                    // requests are worth a call of their own while another is on its way
	usual  = 10 * time.Millisecond // a call that takes longer waits for a row, or for its server
)

// pass sends what waits behind a call that takes long.
func (g *Gatherer[Q, R]) pass() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.waiting) == 0 {
		return
	}
	if g.busy < g.calls {
		g.send()
		return
	}
	g.late = time.AfterFunc(usual, g.pass)
}

// next is called after each call: what has gathered behind it goes now.
func (g *Gatherer[Q, R]) next() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.busy--
	if len(g.waiting) > 0 {
		g.send()
	}
}

// send sends what waits, as many as one call takes. With mu.
func (g *Gatherer[Q, R]) send() {
	batch := g.waiting[:min(len(g.waiting), g.most)]
	g.waiting = g.waiting[len(batch):]
	g.late.Stop()
	if len(g.waiting) > 0 {
		g.late = time.AfterFunc(usual, g.pass)
	}
	g.busy++
	go func() {
		defer g.next()
		g.execute(batch)
	}()
}

func (g *Gatherer[Q, R]) execute(batch []request[Q, R]) {
	qs := make([]Q, len(batch))
	for i, r := range batch {
		qs[i] = r.q
	}
	results, err := g.exec(context.Background(), qs)
	if len(batch) > 1 && Refused(err) {
		for _, r := range batch { // not here: those that come next don't wait for it
			go func() {
				result, err := g.one(context.Background(), r.q)
				g.reply(r, result, err)
			}()
		}
		return
	}
	for i, r := range batch {
		var result R
		if err == nil {
			result = results[i]
		}
		g.reply(r, result, err)
	}
}

func (g *Gatherer[Q, R]) reply(r request[Q, R], result R, err error) {
	r.answer <- answer[R]{result, err}
	g.done.Done()
}

func (g *Gatherer[Q, R]) one(ctx context.Context, q Q) (r R, err error) {
	results, err := g.exec(ctx, []Q{q})
	if err != nil {
		return r, err
	}
	return results[0], nil
}

// Refused reports whether the server has said that it did not do it; without such a word it may have.
func Refused(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.SeverityUnlocalized == "ERROR" && !strings.HasPrefix(pg.Code, "08")
}
