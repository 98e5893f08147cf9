package apicheck_test

import (
	"fmt"
	"math"

	"github.com/anishathalye/porcupine"
)

// asked is one call of the API, as its client sent it.
type asked struct {
	op, lock, owner string // op: acquire, renew, release or get
	match           int64  // If-Match, 0: none
	ttl             int64  // µs
	call, back      int64  // µs by the clock that the database has too; back is math.MaxInt64 if no answer came
}

// told is what the client heard. Times are µs by the database's clock.
type told struct {
	status      int // 0: nothing
	acquired    bool
	owner       string
	token       int64
	at, expires int64 // at: when the grant or the renewal was made; 0: not said
}

// held is what one lock is. Who has lost a reply knows its expiry only as a range, and its token only as larger than one.
type held struct {
	holder   string // empty: free
	token    int64
	unsure   bool  // the token is some number above that
	from, to int64 // it expires at one of these
	maybe    bool  // the server may have taken it back: the grant of a call that was broken off
}

// skew is how far apart, in µs, the readings of one clock by two processes may seem.
const skew = 1000

// Whether the call can have found the lease alive, or over, at a moment between call and answer.
func (h held) alive(in asked) bool { return h.holder != "" && h.to > in.call-skew }
func (h held) over(in asked) bool  { return h.holder == "" || in.back >= h.from-skew || h.maybe }

// has reports whether the token may be n; the lease then has that.
func (h held) has(n int64) (held, bool) {
	if h.unsure {
		ok := n > h.token
		h.token, h.unsure = n, false
		return h, ok
	}
	return h, n == h.token
}

// steps are what the lock can be after one call.
func steps(h held, in asked, out told) []held {
	if out.status == 0 || out.status == 503 {
		return append(unheard(h, in), h)
	}
	switch in.op {
	case "acquire":
		return acquired(h, in, out)
	case "renew":
		return renewed(h, in, out)
	case "release":
		return released(h, in, out)
	}
	if out.status == 404 {
		return only(h, h.over(in))
	}
	return seen(h, in, out)
}

func only(h held, ok bool) []held {
	if !ok {
		return nil
	}
	return []held{h}
}

// unheard is what a call has made of the lock if it was carried out, when its client doesn't know.
func unheard(h held, in asked) []held {
	ours, until := h.holder == in.owner && h.alive(in), int64(math.MaxInt64)
	if in.back < math.MaxInt64 {
		until = in.back + in.ttl + skew
	}
	switch {
	case in.op == "acquire" && (ours || h.over(in)):
		return []held{{in.owner, h.token, true, in.call + in.ttl - skew, until, true}}
	case in.op == "renew" && ours:
		h.from, h.to = in.call+in.ttl-skew, until
		return []held{h}
	case in.op == "release" && ours:
		return []held{{token: h.token, unsure: h.unsure}}
	}
	return nil
}

func acquired(h held, in asked, out told) []held {
	if !out.acquired {
		// Without an expiry the answer is no more than that some statement has the row; so it may be when the lease is
		// the asker's own.
		return only(h, out.expires == 0 || h.alive(in) && h.ends(out.expires))
	}
	again := h.holder == in.owner && h.alive(in)
	fits := out.owner == in.owner && out.token > h.token && lasts(in, out)
	if !fits || !again && !h.over(in.at(out.at)) {
		return nil
	}
	return []held{{holder: in.owner, token: out.token, from: out.expires, to: out.expires}}
}

// at is the call, when it is known at which moment it was carried out.
func (in asked) at(us int64) asked {
	in.call, in.back = us+skew, us-skew // exactly then
	return in
}

// lasts reports whether a grant or a renewal was made during the call, for its TTL.
func lasts(in asked, out told) bool {
	off := out.expires - out.at - in.ttl
	return out.at >= in.call-skew && (in.back == math.MaxInt64 || out.at <= in.back+skew) && off >= 0 && off <= skew
}

func (h held) ends(at int64) bool { return at >= h.from && at <= h.to }

func renewed(h held, in asked, out told) []held {
	ours := h.holder == in.owner
	if out.status == 200 {
		h, same := h.has(out.token)
		if !ours || !same || in.match != 0 && in.match != out.token || !h.alive(in.at(out.at)) || !lasts(in, out) {
			return nil
		}
		h.from, h.to, h.maybe = out.expires, out.expires, false
		return []held{h}
	}
	return refusal(h, in, out)
}

func released(h held, in asked, out told) []held {
	if out.status != 204 {
		return refusal(h, in, out)
	}
	if h.holder != in.owner || !h.alive(in) || !h.matches(in) {
		return nil
	}
	return []held{{token: h.token, unsure: h.unsure}}
}

// matches reports whether If-Match can have been the current token.
func (h held) matches(in asked) bool {
	return in.match == 0 || in.match == h.token && !h.unsure || in.match > h.token && h.unsure
}

// refusal is a renewal or a release that was turned away.
func refusal(h held, in asked, out told) []held {
	switch out.status {
	case 412: // theirs, but under another token
		return only(h, h.holder == in.owner && h.alive(in) && (h.unsure || in.match != 0 && in.match != h.token))
	case 403: // another's, alive
		return only(h, h.holder != in.owner && h.alive(in))
	case 409: // theirs no more
		return only(h, in.op == "renew" && (h.holder != in.owner || h.over(in)))
	case 404:
		return only(h, h.over(in))
	}
	return nil
}

// seen is a lock that was read.
func seen(h held, in asked, out told) []held {
	h, same := h.has(out.token)
	if out.owner != h.holder || !same || !h.alive(in) || !h.ends(out.expires) {
		return nil
	}
	h.from, h.to = out.expires, out.expires
	return []held{h}
}

// oneLock is what the API promises of each lock, for every order in which concurrent calls can have happened.
func oneLock() porcupine.Model {
	m := porcupine.NondeterministicModel{
		Init: func() []any { return []any{held{}} },
		Step: func(state, in, out any) (next []any) {
			for _, h := range steps(state.(held), in.(asked), out.(told)) {
				next = append(next, h)
			}
			return next
		},
		Partition: func(all []porcupine.Operation) (each [][]porcupine.Operation) {
			place := map[string]int{}
			for _, o := range all {
				lock := o.Input.(asked).lock
				if _, ok := place[lock]; !ok {
					place[lock], each = len(each), append(each, nil)
				}
				each[place[lock]] = append(each[place[lock]], o)
			}
			return each
		},
		DescribeOperation: func(in, out any) string { return fmt.Sprintf("%+v -> %+v", in, out) },
	}
	return m.ToModel()
}
