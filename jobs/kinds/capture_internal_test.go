package kinds

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

func TestTheBeginningAndTheEndAreKept(t *testing.T) {
	t.Parallel()
	all := make([]byte, 300)
	for i := range all {
		all[i] = byte(i)
	}
	for range 2000 {
		n, most := rand.IntN(len(all)), 1+rand.IntN(100)
		keep := []string{KeepHeadTail, KeepHead, KeepTail}[rand.IntN(3)]
		r := newRecorder(Capture{Max: int64(most), Keep: keep}, nil, nil)
		for rest := all[:n]; len(rest) > 0; {
			k := 1 + rand.IntN(len(rest))
			if wrote, err := r.Write(rest[:k]); wrote != k || err != nil {
				t.Fatal(wrote, err)
			}
			rest = rest[k:]
		}
		o := r.output()
		head, tail := 0, 0
		switch keep {
		case KeepHead:
			head = min(n, most)
		case KeepTail:
			tail = min(n, most)
		default:
			head = min(n, most/2)
			tail = min(n-head, most-most/2)
		}
		if !bytes.Equal(o.Head, all[:head]) || !bytes.Equal(o.Tail, all[n-tail:n]) || o.Bytes != int64(n) || o.Cut() != (head+tail < n) {
			t.Fatalf("%d bytes, %d kept (%s): %+v", n, most, keep, o)
		}
	}
}

func TestLinesAreLookedAtWhole(t *testing.T) {
	t.Parallel()
	var moved []string
	r := newRecorder(Capture{Max: 10}, regexp.MustCompile(`progress=(\d+)/(\d+)`), func(done, total int64) { moved = append(moved, fmt.Sprint(done, "/", total)) })
	text := "progress=1/3\n" + strings.Repeat("x", 3*mostLine) + "progress=9/9\r\nprogress=99999999999999999999/1\rprogress=2/3\n\nlast"
	for _, c := range []byte(text) {
		_, _ = r.Write([]byte{c})
	}
	r.flush()
	if got := strings.Join(moved, " "); got != "1 / 3 2 / 3" && got != "1/3 2/3" || string(r.last) != "last" {
		t.Errorf("%q, last %q", got, r.last)
	}
	if cap(r.line) > 2*mostLine {
		t.Errorf("a line took %d bytes", cap(r.line))
	}
}

func TestWhatWasSaidSoFarIsABeginningAndAnEnd(t *testing.T) {
	t.Parallel()
	all := make([]byte, 300)
	for i := range all {
		all[i] = byte(i)
	}
	for range 2000 {
		n, most, limit := 1+rand.IntN(len(all)-1), 1+rand.IntN(100), 2+rand.IntN(60)
		keep := []string{KeepHeadTail, KeepHead, KeepTail}[rand.IntN(3)]
		r := newRecorder(Capture{Max: int64(most), Keep: keep}, nil, nil)
		for rest := all[:n]; len(rest) > 0; {
			k := 1 + rand.IntN(len(rest))
			_, _ = r.Write(rest[:k])
			rest = rest[k:]
		}
		o, more := r.soFar(limit, int64(n)-1)
		end := all[:n]
		if keep == KeepHead {
			end = all[:min(n, most)]
		}
		if !more || len(o.Head)+len(o.Tail) > limit || len(o.Head)+len(o.Tail) < min(len(r.head)+len(r.tail), limit/2) || o.Bytes != int64(n) ||
			!bytes.HasPrefix(all, o.Head) || !bytes.HasSuffix(end, o.Tail) {
			t.Fatalf("%d bytes, %d kept (%s), %d asked for: %+v", n, most, keep, limit, o)
		}
		if _, more := r.soFar(limit, int64(n)); more {
			t.Fatal("there is more than there is")
		}
		if _, _ = r.Write([]byte{1}); len(o.Head) > 0 && &o.Head[0] == &r.head[0] {
			t.Fatal("it shares its bytes with who writes")
		}
	}
}
