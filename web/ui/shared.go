package ui

import (
	"context"
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
	at   time.Time // when it was read; zero while it is
	data any
}

func newShared() *shared { return &shared{pages: map[string]*reading{}} }

// share answers what read has answered for the same key within the last second. What is read doesn't end with the request
// that caused it: others wait for it too.
func share[T any](ctx context.Context, s *shared, key string, read func(context.Context) T) T {
	s.mu.Lock()
	got := s.pages[key]
	if got == nil || !got.at.IsZero() && time.Since(got.at) >= sharedFor {
		got = &reading{done: make(chan struct{})}
		s.keep(key, got)
		s.mu.Unlock()
		data := read(context.WithoutCancel(ctx))
		s.mu.Lock()
		got.data, got.at = data, time.Now()
		close(got.done)
		s.mu.Unlock()
		return data
	}
	s.mu.Unlock()
	<-got.done
	return got.data.(T)
}

// keep forgets what nobody can use any more before it remembers another. With mu.
func (s *shared) keep(key string, r *reading) {
	if len(s.pages) >= most {
		for k, old := range s.pages {
			if !old.at.IsZero() && time.Since(old.at) >= sharedFor {
				delete(s.pages, k)
			}
		}
	}
	s.pages[key] = r
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

// together asks for all panels of a page at once.
func together(parts ...func()) {
	var all sync.WaitGroup
	for _, p := range parts {
		all.Go(p)
	}
	all.Wait()
}
