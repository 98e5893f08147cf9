package kinds

import (
	"bytes"
	"cmp"
	"regexp"
	"strconv"
	"sync"

	"pawl/jobs"
)

// What is kept of an output that is longer than its limit.
const (
	KeepHeadTail = "head_tail"
	KeepHead     = "head"
	KeepTail     = "tail"
)

// Capture says what is kept of a command's output.
type Capture struct {
	Max      int64  // bytes of one run; default 1 MiB
	Keep     string // KeepHeadTail (default), KeepHead, KeepTail
	Progress string // a regular expression with two groups, done and total, that is looked for in each line; empty: none
}

const (
	mostOutput = 64 << 20
	mostLine   = 4 << 10 // bytes of a line that are looked at
)

// check returns the capture with its defaults and its regular expression, nil if it has none.
func (c Capture) check() (Capture, *regexp.Regexp, error) {
	c.Max = cmp.Or(c.Max, 1<<20)
	c.Keep = cmp.Or(c.Keep, KeepHeadTail)
	switch {
	case c.Max < 0 || c.Max > mostOutput:
		return c, nil, &ConfigError{"Output.Max", c.Max, "use 1 to 67108864 bytes, which is 64 MiB"}
	case c.Keep != KeepHeadTail && c.Keep != KeepHead && c.Keep != KeepTail:
		return c, nil, &ConfigError{"Output.Keep", c.Keep, "use head_tail, head or tail"}
	case c.Progress == "":
		return c, nil, nil
	}
	re, err := regexp.Compile(c.Progress)
	if err != nil || re.NumSubexp() != 2 {
		return c, nil, &ConfigError{"Output.Progress", c.Progress, `use a regular expression with two groups, done and total: progress=(\d+)/(\d+)`}
	}
	return c, re, nil
}

// recorder keeps the beginning and the end of what is written to it, in bounded memory. One goroutine writes; another may
// ask what there is so far.
type recorder struct {
	mu                 sync.Mutex // guards head, tail, at and bytes
	head, tail         []byte
	mostHead, mostTail int
	at                 int // in a full tail: where its oldest byte is
	bytes              int64

	line     []byte // the last one, as far as it is looked at
	last     []byte // the last one that wasn't empty
	progress *regexp.Regexp
	moved    func(done, total int64)
}

func newRecorder(c Capture, progress *regexp.Regexp, moved func(done, total int64)) *recorder {
	r := &recorder{progress: progress, moved: moved}
	switch most := int(c.Max); c.Keep {
	case KeepHead:
		r.mostHead = most
	case KeepTail:
		r.mostTail = most
	default:
		r.mostHead, r.mostTail = most/2, most-most/2
	}
	return r
}

// Write implements io.Writer. It never fails.
func (r *recorder) Write(p []byte) (int, error) {
	r.lines(p)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bytes += int64(len(p))
	n := min(len(p), r.mostHead-len(r.head))
	r.head = append(r.head, p[:n]...)
	r.keep(p[n:])
	return n + len(p[n:]), nil
}

// keep writes into the tail, which becomes a ring when it is full.
func (r *recorder) keep(p []byte) {
	p = p[max(0, len(p)-r.mostTail):]
	n := min(len(p), r.mostTail-len(r.tail))
	r.tail = append(r.tail, p[:n]...)
	for p = p[n:]; len(p) > 0; p = p[n:] {
		n = copy(r.tail[r.at:], p)
		r.at = (r.at + n) % r.mostTail
	}
}

func (r *recorder) output() jobs.Output {
	return jobs.Output{Head: r.head, Tail: append(bytes.Clone(r.tail[r.at:]), r.tail[:r.at]...), Bytes: r.bytes}
}

// soFar is what there is by now, cut to so many bytes, if it is more than there was.
func (r *recorder) soFar(most int, was int64) (o jobs.Output, more bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.bytes == was {
		return o, false
	}
	if len(r.head)+len(r.tail) <= most {
		o = r.output()
		o.Head = bytes.Clone(o.Head)
		return o, true
	}
	half := most / 2
	o = jobs.Output{Head: bytes.Clone(r.head[:min(len(r.head), half)]), Bytes: r.bytes}
	if len(r.tail) == 0 {
		o.Tail = bytes.Clone(r.head[len(r.head)-half:])
		return o, true
	}
	n := min(len(r.tail), half)
	late := min(n, r.at) // of a ring the newest bytes are before its beginning
	o.Tail = append(bytes.Clone(r.tail[len(r.tail)-(n-late):]), r.tail[r.at-late:r.at]...)
	return o, true
}

// lines looks at each line when it ends, at a line feed or a carriage return.
func (r *recorder) lines(p []byte) {
	for len(p) > 0 {
		end := bytes.IndexAny(p, "\r\n")
		part := p
		if end >= 0 {
			part = p[:end]
		}
		r.line = append(r.line, part[:min(len(part), mostLine-len(r.line))]...)
		if end < 0 {
			return
		}
		r.flush()
		p = p[end+1:]
	}
}

// flush looks at the line that is there.
func (r *recorder) flush() {
	if len(bytes.TrimSpace(r.line)) > 0 {
		r.last = append(r.last[:0], r.line...)
	}
	if r.progress != nil {
		if m := r.progress.FindSubmatch(r.line); m != nil {
			done, errDone := strconv.ParseInt(string(m[1]), 10, 64)
			total, errTotal := strconv.ParseInt(string(m[2]), 10, 64)
			if errDone == nil && errTotal == nil {
				r.moved(done, total)
			}
		}
	}
	r.line = r.line[:0]
}
