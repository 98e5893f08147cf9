package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"pawl/jobs"
)

// readers look at all statements, over and over, and know what each must say.
type readers struct {
	open  func(ctx context.Context, name string) ([]byte, error) // an absent one is errAbsent
	right map[monthly]total

	mu    sync.Mutex
	last  map[string]string // by file: the month that was read last
	reads int
	wrong []string
}

var errAbsent = errors.New("absent")

// byPointer reads as one should.
func byPointer(a *jobs.Artifacts) func(context.Context, string) ([]byte, error) {
	return func(ctx context.Context, name string) ([]byte, error) {
		r, err := a.Open(ctx, name)
		if errors.Is(err, jobs.ErrNoArtifact) {
			return nil, errAbsent
		}
		if err != nil {
			return nil, err
		}
		b, err := io.ReadAll(r)
		return b, errors.Join(err, r.Close())
	}
}

// byName reads what the plain name leads to.
func byName(dir string) func(context.Context, string) ([]byte, error) {
	return func(_ context.Context, name string) ([]byte, error) {
		b, err := os.ReadFile(filepath.Join(dir, name)) //nolint:gosec // a name of our own
		if errors.Is(err, fs.ErrNotExist) {
			return nil, errAbsent
		}
		return b, err
	}
}

// loop looks until ctx ends.
func (r *readers) loop(ctx context.Context, tenants []string) {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for i := 0; ctx.Err() == nil; i++ {
		tenant := tenants[i/2%len(tenants)]
		r.look(ctx, tenant, []string{csvOf(tenant), pageOf(tenant)}[i%2])
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// look reads one file and judges it. It returns the month, empty if there is none yet.
func (r *readers) look(ctx context.Context, tenant, file string) string {
	r.mu.Lock()
	before := r.last[file] // what is older than what somebody has read by now is wrong
	r.mu.Unlock()
	b, err := r.open(ctx, file)
	if ctx.Err() != nil || errors.Is(err, errAbsent) && before == "" {
		return ""
	}
	month, said := "", total{}
	if err == nil {
		month, said, err = parse(file, tenant, b)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reads++
	switch right := r.right[monthly{tenant, month}]; {
	case err != nil:
		r.blame("%s: %v", file, err)
	case said != right:
		r.blame("%s: of %s it says %+v, want %+v", file, month, said, right)
	case month < before:
		r.blame("%s: it is of %s, and was of %s before", file, month, before)
	}
	r.last[file] = max(month, r.last[file])
	return month
}

// blame says a thing once.
func (r *readers) blame(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(r.wrong, text) {
		r.wrong = append(r.wrong, text)
	}
}

func parse(file, tenant string, b []byte) (month string, t total, err error) {
	if strings.HasSuffix(file, ".html") {
		return parsePage(tenant, string(b))
	}
	all, err := csv.NewReader(bytes.NewReader(b)).ReadAll()
	if err != nil {
		return "", t, fmt.Errorf("torn: %w", err)
	}
	if len(all) < 2 || all[0][0] != "statement" || all[0][1] != tenant {
		return "", t, fmt.Errorf("torn: %d lines", len(all))
	}
	end := all[len(all)-1]
	if end[0] != "total" || end[1] != strconv.Itoa(len(all)-2) {
		return "", t, fmt.Errorf("torn: it has %d lines and ends in %q", len(all), end)
	}
	return all[0][2], total{int64(len(all) - 2), cents(end[3])}, nil
}

func parsePage(tenant, page string) (month string, t total, err error) {
	_, rest, begun := strings.Cut(page, "<title>"+tenant+", ")
	month, _, _ = strings.Cut(rest, "<")
	_, foot, ended := strings.Cut(rest, "<tfoot><tr><td>")
	count, amount, _ := strings.Cut(strings.TrimSuffix(foot, "\n</table>\n"), " invoices<td><td>Total<td>")
	t.rows, t.cents = int64(strings.Count(page, "<tr><td>")-1), cents(amount)
	if !begun || !ended || !strings.HasSuffix(foot, "</table>\n") || count != strconv.FormatInt(t.rows, 10) {
		return "", t, fmt.Errorf("torn: %d bytes, %s of %d invoices", len(page), count, t.rows)
	}
	return month, t, nil
}

// cents reads what money writes; what isn't money is never right.
func cents(s string) int64 {
	n, err := strconv.ParseInt(strings.Replace(s, ".", "", 1), 10, 64)
	if err != nil {
		return -1
	}
	return n
}
