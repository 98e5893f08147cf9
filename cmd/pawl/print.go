package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"golang.org/x/term"
)

// printer is the only way out for words. What people asked for goes to standard output, what accompanies it to
// standard error; with JSON only the one value goes to standard output.
type printer struct {
	json     bool
	out, err io.Writer
	paint    bool // standard error takes colour
	paintOut bool
	redraw   bool // standard error is a terminal: progress may be redrawn

	mu    sync.Mutex
	drawn string // the bar at the bottom of the terminal
}

func newPrinter(out, err io.Writer, getenv func(string) string) *printer {
	colour := getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
	return &printer{
		out: out, err: err, redraw: isTerminal(err) && getenv("TERM") != "dumb",
		paint: colour && isTerminal(err), paintOut: colour && isTerminal(out),
	}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// exit says what went wrong and returns the exit code.
func (p *printer) exit(err error) int {
	if err != nil && !errors.Is(err, errSaid) {
		p.note("pawl: %s", sentence(err))
	}
	return codeOf(err)
}

// value prints the command's one JSON value.
func (p *printer) value(v any) error {
	enc := json.NewEncoder(p.out)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// raw writes text that is the command's result, as it is.
func (p *printer) raw(s string) error {
	_, err := io.WriteString(p.out, s)
	return err
}

// line prints a line for people: on standard output, or on standard error when that is taken by JSON.
func (p *printer) line(format string, args ...any) {
	w := p.out
	if p.json {
		w = p.err
	}
	p.write(w, fmt.Sprintf(format, args...))
}

// note prints a line on standard error.
func (p *printer) note(format string, args ...any) { p.write(p.err, fmt.Sprintf(format, args...)) }

// write keeps lines whole, and the bar below them.
func (p *printer) write(w io.Writer, s string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.drawn != "" {
		_, _ = io.WriteString(p.err, eraseLine)
	}
	_, _ = io.WriteString(w, s+"\n") // there is nobody to tell
	if p.drawn != "" {
		_, _ = io.WriteString(p.err, p.drawn)
	}
}

// Write takes log lines, whole ones, for standard error.
func (p *printer) Write(b []byte) (int, error) {
	p.write(p.err, strings.TrimSuffix(string(b), "\n"))
	return len(b), nil
}

// The colours, which are never the only carrier of what they say.
const (
	red    = "31"
	green  = "32"
	yellow = "33"
	bold   = "1"

	eraseLine = "\r\x1b[K"
)

// coloured paints s where the line that it goes into will be a terminal's.
func (p *printer) coloured(colour, s string) string {
	if p.json && p.paint || !p.json && p.paintOut {
		return "\x1b[" + colour + "m" + s + "\x1b[0m"
	}
	return s
}

// table prints rows below their heads, aligned.
func (p *printer) table(heads []string, rows [][]string) {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{heads}, rows...) {
		for i, cell := range row {
			if i > 0 {
				_, _ = io.WriteString(w, "\t")
			}
			_, _ = io.WriteString(w, clean(cell))
		}
		_, _ = io.WriteString(w, "\n")
	}
	_ = w.Flush() // into memory
	for line := range strings.Lines(b.String()) {
		p.line("%s", strings.TrimRight(line, " \n"))
	}
}

// fields prints one thing, a line for each of its properties.
func (p *printer) fields(pairs [][2]string) {
	width := 0
	for _, f := range pairs {
		width = max(width, len(f[0]))
	}
	for _, f := range pairs {
		p.line("%-*s  %s", width, f[0], clean(f[1]))
	}
}

// list prints rows, or says in words that there are none. With JSON it prints them as one array.
func list[T any](p *printer, rows []T, none string, heads []string, cells func(T) []string) error {
	if p.json {
		if rows == nil {
			rows = []T{}
		}
		if err := p.value(rows); err != nil {
			return err
		}
	} else if len(rows) > 0 {
		var lines [][]string
		for _, r := range rows {
			lines = append(lines, cells(r))
		}
		p.table(heads, lines)
	}
	if len(rows) == 0 {
		p.note("%s", none)
	}
	return nil
}

// barWidth is in characters.
const barWidth = 30

// progress shows how far long work is: a bar on a terminal, else a line at each quarter.
type progress struct {
	p       *printer
	what    string
	quarter int64
}

func (p *printer) progress(what string) *progress { return &progress{p: p, what: what, quarter: -1} }

// at says that done of total is done.
func (g *progress) at(done, total int64) {
	if total <= 0 {
		return
	}
	done = min(done, total)
	if g.p.redraw {
		full := int(done * barWidth / total)
		g.p.draw(fmt.Sprintf("%s  [%s%s] %3d %%", g.what, strings.Repeat("=", full), strings.Repeat(" ", barWidth-full), done*100/total))
		return
	}
	if q := done * 4 / total; q > g.quarter && q > 0 {
		g.quarter = q
		g.p.note("%s  %s  %d %%", time.Now().UTC().Format(clock), g.what, done*100/total)
	}
}

// end removes the bar.
func (g *progress) end() { g.p.draw("") }

func (p *printer) draw(bar string) {
	if !p.redraw {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if bar == p.drawn {
		return
	}
	p.drawn = bar
	_, _ = io.WriteString(p.err, eraseLine+bar)
}

// clock is how a story's lines begin.
const clock = "15:04:05.000"

// tell prints a line of a story, with the time.
func (p *printer) tell(format string, args ...any) {
	p.line("%s  %s", time.Now().UTC().Format(clock), fmt.Sprintf(format, args...))
}
