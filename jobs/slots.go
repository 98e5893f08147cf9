package jobs

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Slots are the permits that a run found none of: the locks Name#0 to Name#(Limit-1).
type Slots struct {
	Name  string
	Limit int
}

// lockrepo's SlotsError, as it stands in the error of a run.
var noSlotFree = regexp.MustCompile(`all ([0-9]+) slots of (".*") are held`)

// SlotsOf reads from the error of a run that it found no permit, see [Concurrency], and which. Such a run is drained, has
// begun nothing, and costs no attempt.
func SlotsOf(runError string) (Slots, bool) {
	if !strings.HasPrefix(runError, waitsForSlot) {
		return Slots{}, false
	}
	m := noSlotFree.FindStringSubmatch(runError)
	if m == nil {
		return Slots{}, false
	}
	limit, err := strconv.Atoi(m[1])
	name, wrong := strconv.Unquote(m[2])
	return Slots{name, limit}, err == nil && wrong == nil
}

// String names them.
func (s Slots) String() string {
	if s.Limit == 1 {
		return "the only slot of " + s.Name
	}
	return fmt.Sprintf("one of the %d slots of %s", s.Limit, s.Name)
}

// Locks are the first n of the locks that the permits are, at most all.
func (s Slots) Locks(n int) []string {
	locks := make([]string, min(n, s.Limit))
	for i := range locks {
		locks[i] = s.Name + "#" + strconv.Itoa(i)
	}
	return locks
}

const (
	// The run that has the period last, if it was turned away.
	whySlotSQL = `
select r.error from pawl.periods p join pawl.runs r on r.id = p.run
 where p.job = @job and p.key = @key and p.revision = @revision::int and r.state = 'drained' and starts_with(r.error, @waits)`

	whySlotHoldersSQL = `
select name || ' by ' || coalesce(holder, 'somebody') || ' until ' || to_char(expires_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
  from pawl.locks where name = any (@slots::text[]) and grant_id is not null and expires_at > clock_timestamp()
 order by array_position(@slots::text[], name) limit @most`

	// Shards of a period that were turned away.
	whySlotShardsSQL = `
select count(*)::text || ' ' || max(r.error) from pawl.periods s
 cross join lateral (select x.state, x.error from pawl.runs x where x.id = s.run limit 1) r
 where s.job = @job and s.parent = @key and s.revision = @revision::int and s.state = 'open' and r.state = 'drained' and starts_with(r.error, @waits) having count(*) > 0`

	mostSlotsTold = 5
)

// slot tells of a period that waits for a permit which ones they are, and who holds them.
func (t *teller) slot(x whyPeriod) (told bool, err error) {
	found, err := t.texts(whySlotSQL, pgx.NamedArgs{"revision": x.Revision, "waits": waitsForSlot})
	if err != nil || len(found) == 0 {
		return false, err
	}
	s, ok := SlotsOf(found[0])
	if !ok {
		return false, nil
	}
	return true, t.slotHolders("It waits", s)
}

// slotShards tells the same of a period's shards.
func (t *teller) slotShards(x whyPeriod) error {
	found, err := t.texts(whySlotShardsSQL, pgx.NamedArgs{"revision": x.Revision, "waits": waitsForSlot})
	if err != nil || len(found) == 0 {
		return err
	}
	n, text, _ := strings.Cut(found[0], " ")
	s, ok := SlotsOf(text)
	if !ok {
		return nil
	}
	who := n + " of its shards wait"
	if n == "1" {
		who = "One of its shards waits"
	}
	return t.slotHolders(who, s)
}

func (t *teller) slotHolders(who string, s Slots) error {
	holders, err := t.texts(whySlotHoldersSQL, pgx.NamedArgs{"slots": s.Locks(s.Limit), "most": mostSlotsTold + 1})
	if err != nil {
		return err
	}
	more := ""
	if len(holders) > mostSlotsTold {
		holders, more = holders[:mostSlotsTold], ", and others"
	}
	t.say("%s for %s. Held: %s%s. It is tried again every few seconds, which costs no attempt.", who, s,
		or(strings.Join(holders, ", "), "none by now, so there is one in a moment"), more)
	return nil
}

// turnedAway tells how often a revision found no permit.
func (t *teller) turnedAway(x whyPeriod, all []whyAway) {
	for _, a := range all {
		if a.Revision != x.Revision {
			continue
		}
		s, _ := SlotsOf(a.Error)
		if a.Count == 1 {
			t.say("At %s it found none of the slots of %s free, which cost no attempt.", stamp(a.First), s.Name)
			continue
		}
		t.say("It found none of the slots of %s free %d times from %s to %s, which cost no attempt.", s.Name, a.Count, stamp(a.First), stamp(a.Last))
	}
}
