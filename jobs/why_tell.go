package jobs

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"pawl/fence"
)

// teller tells the life of one period. It lives as long as one transaction.
type teller struct {
	ctx      context.Context //nolint:containedctx // of the one question
	tx       pgx.Tx
	job, key string
	state    string
	said     []string
	payloads []int // which of them are for those who may see payloads
}

func (t *teller) say(format string, args ...any) {
	t.said = append(t.said, fmt.Sprintf(format, args...))
}

// payload says what not everybody may read.
func (t *teller) payload(format string, args ...any) {
	t.payloads = append(t.payloads, len(t.said))
	t.say(format, args...)
}

func (t *teller) tell() error {
	p, err := t.stored()
	if err != nil {
		return err
	}
	s, err := p.parse()
	if err != nil {
		return err
	}
	p.schedule = s
	periods, err := ask[whyPeriod](t, whyPeriodsSQL, pgx.NamedArgs{"at": instant(s, t.key)})
	if err != nil {
		return err
	}
	if len(periods) == 0 {
		return t.never(p)
	}
	runs, err := ask[whyRun](t, whyRunsSQL, pgx.NamedArgs{"waits": waitsForSlot})
	if err != nil {
		return err
	}
	away, err := ask[whyAway](t, whyAwaySQL, pgx.NamedArgs{"waits": waitsForSlot})
	if err != nil {
		return err
	}
	acts, err := ask[whyAct](t, whyActsSQL, pgx.NamedArgs{"since": periods[0].ScheduledAt})
	if err != nil {
		return err
	}
	for i, x := range periods {
		t.begin(x)
		if words := paramWords([]byte(x.Params)); words != "" {
			t.payload("It was given %s.", words)
		}
		t.turnedAway(x, away)
		t.runs(x, runs)
		if i == len(periods)-1 {
			t.acts(acts)
			t.state = x.State
			if err := t.now(x, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// never tells why there is no row.
func (t *teller) never(p *planned) error {
	x, err := p.schedule.ParseKey(t.key)
	if err != nil {
		return err
	}
	at, owed := p.schedule.Due(x)
	switch {
	case p.schedule.Manual():
		t.say("%s is @manual: it owes only what is triggered, and %s never was.", t.job, t.key)
	case !owed:
		t.say("The schedule %q never owes %s.", p.Schedule, t.key)
	case at.After(p.now):
		t.say("%s %s is due at %s, which is still to come.", t.job, t.key, stamp(at))
	case at.After(p.watermark):
		t.say("%s %s was due at %s, and is not planned yet: the job is planned up to %s.", t.job, t.key, stamp(at), stamp(p.watermark))
	default:
		t.say("%s %s would have been due at %s, before the job was registered or under another schedule; nothing was owed then.", t.job, t.key, stamp(at))
		t.say("To owe it now: pawl backfill %s --from %s --to %s", t.job, t.key, t.key)
	}
	return nil
}

// begin tells how it came to be owed.
func (t *teller) begin(x whyPeriod) {
	of := ""
	if x.Revision > 1 {
		of = fmt.Sprintf(" (revision %d)", x.Revision)
	}
	if x.Ticks > 1 && x.LastAt != nil {
		t.say("%s %s is one of %d ticks from %s to %s, which share one row.", t.job, t.key, x.Ticks, stamp(x.ScheduledAt), stamp(*x.LastAt))
		return
	}
	switch x.Origin {
	case originSchedule:
		t.say("%s %s%s was scheduled for %s.", t.job, t.key, of, stamp(x.ScheduledAt))
	case originBackfill:
		t.say("%s %s%s was scheduled for %s and owed by a backfill.", t.job, t.key, of, stamp(x.ScheduledAt))
	case originRerun:
		t.say("%s %s was owed again as revision %d by a rerun.", t.job, t.key, x.Revision)
	default:
		t.say("%s %s%s was owed by a %s at %s.", t.job, t.key, of, x.Origin, stamp(x.ScheduledAt))
	}
}

func (t *teller) runs(x whyPeriod, runs []whyRun) {
	for _, r := range runs {
		if r.Revision != x.Revision {
			continue
		}
		text := fmt.Sprintf("Run %d began at %s on %s with token %s", r.Attempt, stamp(r.StartedAt), or(r.Holder, "nobody known"), fence.FormatSeq(r.Token))
		if r.EndedAt == nil {
			text += " and is under way"
		} else {
			text += fmt.Sprintf(" and %s after %s", ran(r.State), r.EndedAt.Sub(r.StartedAt).Round(time.Millisecond))
		}
		if r.Error != "" {
			line, _, _ := strings.Cut(r.Error, "\n")
			text += ": " + strings.TrimSuffix(line, ".")
		}
		t.say("%s.", text)
		t.lastWords(r)
	}
}

// lastWords tells what a run had said whose process died: nobody else tells that.
func (t *teller) lastWords(r whyRun) {
	if !r.Partial || r.Said == nil || r.EndedAt == nil {
		return
	}
	lines := strings.Split(strings.TrimSpace(strings.ToValidUTF8(string(r.LastWords), "")), "\n")
	t.payload("Its output is incomplete, %d bytes; the last that is kept: %q. All of it: pawl job output %s %s --attempt %d", *r.Said, lines[len(lines)-1], t.job, t.key, r.Attempt)
}

// ran is how a run ended.
func ran(state string) string {
	switch state {
	case stateComplete:
		return "completed the period"
	case stateTimedOut:
		return "took longer than its timeout"
	case stateLost:
		return "lost its lease"
	case stateDrained:
		return "was drained, since its process shut down, which costs no attempt"
	case stateSkipped:
		return "said that there is nothing to do"
	}
	return state
}

func (t *teller) acts(acts []whyAct) {
	for _, a := range acts {
		text := fmt.Sprintf("At %s %s did a %s", stamp(a.At), a.Actor, a.Action)
		if a.Period == "" {
			text += " of the job"
		}
		if a.Reason != "" {
			text += ": " + strings.TrimSuffix(a.Reason, ".")
		}
		t.say("%s.", text)
	}
}

// now tells what it is, and what it waits for.
func (t *teller) now(x whyPeriod, p *planned) error {
	switch x.State {
	case stateComplete:
		t.say("It is complete since %s.", stampOf(x.EndedAt))
	case stateRunning:
		t.say("It is running.")
		return t.slotShards(x)
	case stateOpen:
		return t.waits(x, p)
	case stateDead:
		t.say("It is dead after %d of %d runs: nothing runs it again by itself. To owe it again: pawl job retry %s %s", x.Attempts, x.MaxAttempts, t.job, t.key)
	case "missed":
		t.say("It was missed (%s): %s. To owe it now: pawl backfill %s --from %s --to %s", x.Reason, missed(x.Reason), t.job, t.key, t.key)
	case stateSkipped:
		t.say("It was skipped (%s)%s.", x.Reason, by(x.BlockedBy))
	case "held":
		t.say("It is held: its job was paused when it was due.")
	default:
		t.say("It is %s%s since %s.", x.State, reasoned(x.Reason), stampOf(x.EndedAt))
	}
	return nil
}

func missed(reason string) string {
	switch reason {
	case "too_late":
		return "it could not start as soon as start_within wants"
	case "window":
		return "it was older than the catch-up window when it was planned"
	case "catch_up":
		return "its catch-up policy owes only later ticks"
	}
	return "nobody ran it"
}

// waits tells what an open period waits for.
func (t *teller) waits(x whyPeriod, p *planned) error {
	switch x.Waits {
	case "paused":
		t.say("It waits: its job is paused%s.", by(x.BlockedBy))
		return nil
	case "dead":
		t.say("It waits%s, which is dead, and the job holds the next.", by(x.BlockedBy))
		return nil
	case "needs":
		needs, err := t.texts(whyNeedsSQL, nil)
		if err != nil {
			return err
		}
		t.say("It waits for what it needs: %s.", or(strings.Join(needs, ", "), "all of which is complete by now, so it is let go in a moment"))
		return nil
	}
	if told, err := t.slot(x); told || err != nil {
		return err
	}
	if x.NotBefore != nil && x.NotBefore.After(p.now) {
		t.say("It waits until %s: for its next run, or its jitter.", stamp(*x.NotBefore))
		return nil
	}
	at := pgx.NamedArgs{"lock": x.Lock, "priority": x.Priority, "at": x.ScheduledAt}
	ahead, err := t.texts(whyAheadSQL, at)
	if err != nil {
		return err
	}
	if len(ahead) > 0 {
		t.say("It waits for its turn under the lock %s: %s.", x.Lock, ahead[0])
		return nil
	}
	holder, err := t.texts(whyHolderSQL, at)
	if err != nil {
		return err
	}
	if len(holder) > 0 {
		t.say("It waits for the lock %s, which is held by %s.", x.Lock, holder[0])
		return nil
	}
	t.say("It is owed, and nothing is in its way: it waits for a process that has the job and a free slot.")
	return nil
}

func by(what string) string {
	if what == "" {
		return ""
	}
	return " behind " + what
}

func reasoned(reason string) string {
	if reason == "" {
		return ""
	}
	return " (" + reason + ")"
}

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

func stampOf(t *time.Time) string {
	if t == nil {
		return "an unknown time"
	}
	return stamp(*t)
}
