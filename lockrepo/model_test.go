package lockrepo

import "github.com/google/uuid"

// What an operation answers, in the model and, by answer, in the database.
const (
	isOK       = "ok"
	isHeld     = "held"
	isNotHeld  = "not held"
	isEnded    = "ended"
	isNotFound = "not found"
)

// modelLock is one lock. Its clock counts minutes.
type modelLock struct {
	token       int64
	grant       uuid.UUID // nil: free
	holder, key string
	until, idle int // the minute in which the lease ends; the one of the last grant, renewal or release
}

// model is what the locks promise, without tokens' values: those it is told.
type model struct {
	now   int
	locks map[string]*modelLock
	ended map[uuid.UUID]bool // in the history
}

func (m *model) live(l *modelLock) bool { return l.grant != uuid.Nil && m.now < l.until }

func (m *model) free(l *modelLock) {
	m.ended[l.grant] = true
	l.grant, l.holder, l.key, l.idle = uuid.Nil, "", "", m.now
}

// acquire says what the request is answered, and whether with a new token.
func (m *model) acquire(q Request) (want string, fresh bool) {
	l := m.locks[q.Lock]
	switch {
	case m.ended[q.Grant] || l != nil && l.grant == q.Grant && !m.live(l):
		return isEnded, false
	case l != nil && l.grant == q.Grant:
		return isOK, false
	case l == nil || !m.live(l) || q.Reenter && l.holder == q.Holder && l.key == q.Key:
		return isOK, true
	}
	return isHeld, false
}

func (m *model) granted(q Request, token int64, minutes int) {
	if l := m.locks[q.Lock]; l != nil && l.grant != uuid.Nil && l.grant != q.Grant {
		m.ended[l.grant] = true
	}
	m.locks[q.Lock] = &modelLock{token, q.Grant, q.Holder, q.Key, m.now + minutes, m.now}
}

// own is the lock if the lease is the one that it has, live or not.
func (m *model) own(l Lease) *modelLock {
	if o := m.locks[l.Token.Lock]; o != nil && o.token == l.Token.Seq && o.grant == l.Grant {
		return o
	}
	return nil
}

func (m *model) renew(l Lease, minutes int) string {
	o := m.own(l)
	if o == nil || !m.live(o) {
		return isNotHeld
	}
	o.until, o.idle = m.now+minutes, m.now
	return isOK
}

func (m *model) release(l Lease) string {
	o := m.own(l)
	if o == nil {
		return isNotHeld
	}
	live := m.live(o)
	m.free(o)
	if !live {
		return isNotHeld
	}
	return isOK
}

func (m *model) force(lock string, token int64) string {
	switch o := m.locks[lock]; {
	case o == nil:
		return isNotFound
	case o.token != token || o.grant == uuid.Nil:
		return isNotHeld
	default:
		m.free(o)
		return isOK
	}
}

func (m *model) prune(minutes int) (gone int) {
	for name, o := range m.locks {
		if o.grant == uuid.Nil && m.now-o.idle > minutes {
			delete(m.locks, name)
			gone++
		}
	}
	return gone
}
