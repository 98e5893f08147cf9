package main

import (
	"context"
	"io"
	"runtime"
	"testing"

	"pawl/jobs"
)

// peak is how large the heap was at most while the file was written.
type peak struct {
	io.Writer
	writes int
	heap   uint64
}

func (p *peak) Write(b []byte) (int, error) {
	if p.writes++; p.writes%5000 == 0 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		p.heap = max(p.heap, m.HeapInuse)
	}
	return p.Writer.Write(b)
}

// Not parallel: it measures the process. 2 million invoices, with -large=2000000, need as much as few do.
func TestALargeStatementNeedsNoMoreMemoryThanASmallOne(t *testing.T) {
	r, pool := reported(t)
	first := firstMonth(1)
	if err := generate(t.Context(), pool, input{1, 1, *large, first}); err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	p := &peak{}
	var size int64
	a := publishes(t, pool, func(ctx context.Context, run *jobs.Run) error {
		a, err := run.Publish(ctx, csvOf("tenant-01"), func(w io.Writer) error {
			p.Writer = w
			return statement{"tenant-01", "large", first, first.AddDate(0, 1, 0)}.write(ctx, r.pool, newPage(p))
		})
		size = a.Size
		return err
	})
	got, err := a.Current(t.Context(), csvOf("tenant-01"))
	if err != nil || a.Verify(t.Context(), got) != nil {
		t.Error(err)
	}
	t.Logf("%d invoices, %d MB; heap %d MB before, %d MB at most", *large, size>>20, before.HeapInuse>>20, p.heap>>20)
	if size < int64(*large)*40 || p.heap == 0 || p.heap > before.HeapInuse+32<<20 {
		t.Errorf("the heap was %d MB at most for a file of %d MB, and %d MB before", p.heap>>20, size>>20, before.HeapInuse>>20)
	}
}
