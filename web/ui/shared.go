package ui

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"
)

const (
	sharedFor    = time.Second     // how long one answer serves everybody who looks
	panelTimeout = 2 * time.Second // of one panel
	most         = 200             // pages that are remembered at once
)

// shared lets those who look at one page at the same time read it once.
type shared struct {
	mu    sync.Mutex
	pages map[string]*reading
}

// reading is one page's data, or its being read.
type reading struct {
	done chan struct{}
	at   time.Time // when it was read; zero while it is, and when that failed
	data any
}

func newShared() *shared { return &shared{pages: map[string]*reading{}} }

// share answers what read has answered for the same key within the last second. What is read doesn't end with the request
// that caused it: others wait for it too. If it panics, so do they: nobody waits for what never comes.
func share[T any](ctx context.Context, s *shared, key string, read func(context.Context) T) T {
	got, mine := s.get(key)
	if mine {
		defer s.end(key, got)
		got.data = read(context.WithoutCancel(ctx))
		return got.data.(T)
	}
	<-got.done
	data, ok := got.data.(T)
	if !ok {
		panic("ui: what others wait for was not read")
	}
	return data
}

// get is the page of a key; the caller reads it if it is theirs to.
func (s *shared) get(key string) (got *reading, mine bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	got = s.pages[key]
	if got == nil || !got.at.IsZero() && time.Since(got.at) >= sharedFor {
		got, mine = &reading{done: make(chan struct{})}, true
		s.keep(key, got)
	}
	return got, mine
}

// end hands a page to those who wait for it. What failed isn't remembered.
func (s *shared) end(key string, r *reading) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case r.data != nil:
		r.at = time.Now()
	case s.pages[key] == r:
		delete(s.pages, key)
	}
	close(r.done)
}

// keep forgets what nobody can use any more before it remembers another; if there are as many all the same, it remembers
// the others: this one is read for who asks alone. With mu.
func (s *shared) keep(key string, r *reading) {
	if len(s.pages) >= most {
		for k, old := range s.pages {
			if !old.at.IsZero() && time.Since(old.at) >= sharedFor {
				delete(s.pages, k)
			}
		}
	}
	if s.pages[key] != nil || len(s.pages) < most {
		s.pages[key] = r
	}
}

// Panel is a part of a page: rows, or why there are none.
type Panel[T any] struct {
	Rows []T
	More bool   // there are more than these
	Away string // why the database gave no answer; empty: it did
}

// panel asks for one more row than it shows, within two seconds.
func panel[T any](ctx context.Context, limit int, ask func(context.Context, int) ([]T, error)) Panel[T] {
	ctx, cancel := context.WithTimeout(ctx, panelTimeout)
	defer cancel()
	rows, err := ask(ctx, limit+1)
	switch {
	case err != nil:
		return Panel[T]{Away: reason(err)}
	case len(rows) > limit:
		return Panel[T]{Rows: rows[:limit], More: true}
	}
	return Panel[T]{Rows: rows}
}

// together asks for all panels of a page at once. One that panics ends its request, as in a handler, and not the process.
func together(parts ...func()) {
	var all sync.WaitGroup
	broken := make(chan string, len(parts))
	for _, p := range parts {
		all.Go(func() {
			defer func() {
				if what := recover(); what != nil {
					broken <- fmt.Sprintf("%v\n%s", what, debug.Stack())
				}
			}()
			p()
		})
	}
	all.Wait()
	select {
	case what := <-broken:
		panic(what)
	default:
	}
}
