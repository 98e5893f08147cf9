package pgdev

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
)

// tail passes the server's log lines on and keeps the last few, to explain a
// failure.
type tail struct {
	log *slog.Logger

	mu    sync.Mutex
	part  []byte
	lines []string
}

func newTail(log *slog.Logger) *tail {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &tail{log: log}
}

// Write takes any piece of the stream.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.part = append(t.part, p...)
	for {
		line, rest, found := bytes.Cut(t.part, []byte("\n"))
		if !found {
			return len(p), nil
		}
		t.keep(string(line))
		t.part = rest
	}
}

func (t *tail) keep(line string) {
	const most = 20
	t.log.Debug("postgres", "line", line)
	t.lines = append(t.lines, line)
	if len(t.lines) > most {
		t.lines = t.lines[1:]
	}
}

func (t *tail) reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines, t.part = nil, nil
}

func (t *tail) contains(part string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Contains(strings.Join(t.lines, "\n"), part)
}

// explain adds the last lines to an error.
func (t *tail) explain(err error) error {
	if err == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return fmt.Errorf("%w: %s", err, strings.Join(t.lines, "\n"))
}
