package faults_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"pawl/internal/faults"
)

// fault is one thing that goes wrong.
type fault struct {
	kind  *kind
	n     int           // the how-manieth of its kind: some take turns between two forms
	at    time.Duration // after the beginning
	lasts time.Duration
	track int // a worker's number, or -1 for the server
}

func (f fault) String() string {
	where := "server"
	if f.track >= 0 {
		where = fmt.Sprintf("worker %d", f.track)
	}
	return fmt.Sprintf("%7.1fs  %-26s %-9s %4d ms", f.at.Seconds(), f.kind.name, where, f.lasts.Milliseconds())
}

func (k *kind) fault(r *rand.Rand, n, track int) fault {
	return fault{kind: k, n: n, lasts: k.least + time.Duration(r.Int64N(int64(k.most-k.least)+1)), track: track}
}

// mixed is every fault of a worker twice for each worker and every fault of the server once. Those of one worker, and
// those of the server, come one after the other; of different ones at the same time.
func mixed(seed uint64, workers int) (plan []fault) {
	r := rand.New(rand.NewPCG(seed, 0))
	for track := -1; track < workers; track++ {
		at, dealt := 500*time.Millisecond, map[*kind]bool{}
		for _, i := range append(r.Perm(len(kinds)), r.Perm(len(kinds))...) {
			k := &kinds[i]
			if k.server != (track < 0) || k.server && dealt[k] {
				continue
			}
			dealt[k] = true
			at += time.Duration(200+r.IntN(800)) * time.Millisecond
			if k.server {
				at += 2 * ttl // else nothing else gets its turn
			}
			f := k.fault(r, r.IntN(2), track)
			f.at = at
			plan = append(plan, f)
			at += f.lasts
		}
	}
	return plan
}

// printed is the plan, a line each.
func printed(plan []fault) string {
	var b strings.Builder
	for _, f := range plan {
		fmt.Fprintf(&b, "\n%s", f)
	}
	return b.String()
}

// kind is a sort of fault.
type kind struct {
	name        string
	what        string // as docs/faults.md says it
	server      bool   // it is the server's, else a worker's
	least, most time.Duration
	bites       time.Duration // what the worst recovery takes at least: less, and it has missed
	// strike makes it happen and undoes it after f.lasts; it returns when it was over.
	strike func(w *world, f fault, m *member) error
}

const ttl = faults.TTL

var kinds = []kind{
	{"reply lost", "replies to one worker vanish, COMMITs arrive; then its connections are cut", false, ttl / 10, ttl / 2, ttl / 10, replyLost},
	{"reply late", "replies to one worker arrive 1.5 leases late", false, 2 * ttl, 3 * ttl, ttl / 2, replyLate},
	{"black hole", "nothing passes between one worker and the server; connections stay open", false, 2 * ttl, 3 * ttl, ttl / 2, blackHole},
	{"holder stopped", "the holder is stopped 50 ms before its lease ends, its renewal being held up, and wakes just after its successor has written", false, ttl / 100, ttl / 15, ttl / 2, holderStopped},
	{"wrong clock", "one worker's wall clock leaps by 10 minutes, forward or back, and returns", false, ttl, 2 * ttl, 0, wrongClock},
	{"database paused", "every process of the server is stopped", true, ttl, 3 * ttl, ttl, databasePaused},
	{"database restarted", "a fast restart and a crash of a backend in turn", true, 0, 0, 0, databaseRestarted},
	{"database read-only", "default_transaction_read_only = on", true, ttl, 3 * ttl, ttl, databaseReadOnly},
	{"database failed over", "a streaming standby, cut off for a while, is promoted; the primary is gone with what it alone knew", true, ttl / 10, ttl, ttl / 10, databaseFailedOver},
}
