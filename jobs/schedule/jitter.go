package schedule

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
	"time"
)

// JitterOf returns how long after its tick the period of that key may start at the
// earliest: in [0, Spec.Jitter), whole milliseconds. It is a hash of both names, hence
// the same on every replica, in every attempt and in every release. Period and tick
// keep their nominal times.
func (s Schedule) JitterOf(job, key string) time.Duration {
	sum := sha256.Sum256([]byte(job + "\x00" + key))
	share, _ := bits.Mul64(binary.BigEndian.Uint64(sum[:]), uint64(s.jitter))
	return time.Duration(share).Truncate(time.Millisecond)
}
