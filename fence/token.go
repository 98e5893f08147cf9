package fence

import (
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxLock is the longest name of a lock, in bytes.
const maxLock = 255

// Token is the fencing token of one acquisition of a lock. Tokens of one lock only grow: the holder with the larger
// Seq came later. Tokens of different locks don't compare. A Token is a value: comparable, and usable as a map key.
type Token struct {
	// Lock is the lock's name: 1 to 255 bytes of UTF-8 without NUL.
	Lock string
	// Seq is the number: positive, and below 2⁵³, so that JavaScript can carry it.
	Seq int64
}

// String is the form for people: job:settle#1795969942·676573.
func (t Token) String() string { return t.Lock + "#" + FormatSeq(t.Seq) }

// LogValue is the form for logs: the attributes lock and token.
func (t Token) LogValue() slog.Value {
	return slog.GroupValue(slog.String("lock", t.Lock), slog.Int64("token", t.Seq))
}

// Valid says whether the token can be one that a lock has issued. It does not ask the database.
func (t Token) Valid() bool { return t.check() == nil }

// check says what is wrong with the token.
func (t Token) check() error {
	switch {
	case t.Lock == "":
		return errors.New("fence: token: lock is empty; give the name of the lock")
	case len(t.Lock) > maxLock:
		return fmt.Errorf("fence: token: lock has %d bytes; at most %d are allowed", len(t.Lock), maxLock)
	case !utf8.ValidString(t.Lock) || strings.ContainsRune(t.Lock, 0):
		return fmt.Errorf("fence: token: lock %q must be UTF-8 without NUL", t.Lock)
	case t.Seq <= 0:
		return fmt.Errorf("fence: token: seq of lock %q is %d; give the token of a lease, which is positive", t.Lock, t.Seq)
	}
	return nil
}

// FormatSeq writes a token's number with its last six digits set off, since they are what tells neighbours apart:
// 1795969942·676573. Shorter numbers stay as they are.
func FormatSeq(seq int64) string {
	s := strconv.FormatInt(seq, 10)
	if seq < 1_000_000 {
		return s
	}
	return s[:len(s)-6] + "·" + s[len(s)-6:]
}
