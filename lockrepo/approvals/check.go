package approvals

import (
	"cmp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	minReason = 10   // characters
	maxText   = 2000 // characters of a reason or a note
	maxPerson = 300  // bytes of an id or a name
	maxLock   = 255  // bytes

	validFor    = 15 * time.Minute
	minValidFor = time.Minute
	maxValidFor = time.Hour
)

// check returns r with its defaults and its text trimmed.
func (r Release) check() (Release, error) {
	r.Reason, r.Valid = strings.TrimSpace(r.Reason), cmp.Or(r.Valid, validFor)
	var err error
	if r.By, err = r.By.check(); err != nil {
		return r, err
	}
	switch n := utf8.RuneCountInString(r.Reason); {
	case r.Lock == "" || len(r.Lock) > maxLock || !stored(r.Lock):
		return r, badInput("lock name %q is empty, longer than %d bytes or not UTF-8: name the lock as lists show it", r.Lock, maxLock)
	case r.Token < 1:
		return r, badInput("token is %d: give the token of the lease that is meant", r.Token)
	case n < minReason:
		return r, badInput("reason has %d characters: give at least %d, for those who approve and read the audit", n, minReason)
	case n > maxText || !stored(r.Reason):
		return r, badInput("reason has %d characters, or some that are not UTF-8: give at most %d", n, maxText)
	case r.Valid < minValidFor || r.Valid > maxValidFor:
		return r, badInput("valid is %v: give %v to %v", r.Valid, minValidFor, maxValidFor)
	}
	return r, nil
}

func (p Person) check() (Person, error) {
	p.Name = cmp.Or(p.Name, p.ID)
	for what, s := range map[string]string{"id": p.ID, "name": p.Name} {
		if strings.TrimSpace(s) == "" || len(s) > maxPerson || !stored(s) || strings.ContainsFunc(s, unicode.IsControl) {
			return p, badInput("person's %s %q is empty, longer than %d bytes or has control characters: say who it is", what, s, maxPerson)
		}
	}
	return p, nil
}

// checkNote returns the note trimmed. A no has to have one.
func checkNote(approve bool, note string) (string, error) {
	note = strings.TrimSpace(note)
	switch n := utf8.RuneCountInString(note); {
	case n == 0 && !approve:
		return "", badInput("note is empty: say why it is declined, for who has asked")
	case n > maxText || !stored(note):
		return "", badInput("note has %d characters, or some that are not UTF-8: give at most %d", n, maxText)
	}
	return note, nil
}

// stored reports whether Postgres takes s as text.
func stored(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }
