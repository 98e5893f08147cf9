package jobs

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// teller tells the life of one period. It lives as long as one transaction.
type teller struct {
	ctx      context.Context //nolint:containedctx // of the one question
	tx       pgx.Tx
	job, key string
	state    string
	said     []string
	payloads []int     // which of them are for those who may see payloads
	decided  time.Time // when a person last decided on an effect of it
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
	if err := t.past(periods); err != nil {
		return err
	}
	last := periods[len(periods)-1]
	t.state = last.State
	return t.now(last, p)
}

// never tells why there is no row.
func (t *teller) never(p *planned) error {
	if period, shard := cutKey(t.key); shard != "" {
		return fmt.Errorf("%w %s %s: that period has no shard %q; list those it has with: pawl job shards %s %s", ErrUnknownPeriod, t.job, t.key, shard, t.job, period)
	}
	x, err := p.schedule.ParseKey(t.key)
	if err != nil {
		return err
	}
	at, owed := p.schedule.Due(x)
	switch {
	case p.Outbox:
		t.say("%s is an outbox: it owes only what is enqueued, and %s never was.", t.job, t.key)
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

// now tells what it is, and what it waits for.
func (t *teller) now(x whyPeriod, p *planned) error {
	dead, err := t.shards(x)
	if err != nil {
		return err
	}
	effects, err := t.effects(x, dead)
	if err != nil {
		return err
	}
	if x.State != stateDead {
		t.said = append(t.said, effects...)
	}
	switch x.State {
	case stateComplete:
		t.say("It is complete since %s.", stampOf(x.EndedAt))
	case stateRunning:
		t.say("It is running.")
		return t.slotShards(x)
	case stateOpen:
		return t.waits(x, p)
	case stateDead:
		return t.dead(x, p, effects)
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

// dead tells what a person has to do: first what nobody knows, then the period.
func (t *teller) dead(x whyPeriod, p *planned, effects []string) error {
	died := fmt.Sprintf("It is dead after %d of %d runs: nothing runs it again by itself.", x.Attempts, x.MaxAttempts)
	switch {
	case x.Reason == "shard":
		died = "It is dead, since shards of it are: nothing runs it again by itself."
	case x.Reason == stateUncertain && len(effects) == 0 && (x.EndedAt == nil || t.decided.Before(*x.EndedAt)):
		died += " Nobody knows whether its work has happened: find that out first."
	}
	again, err := t.again(x)
	if err != nil {
		return err
	}
	if p.Outbox {
		again += fmt.Sprintf("; or drop it: pawl job cancel %s %s --reason TEXT; until then it holds those behind it in its key", t.job, t.key)
	}
	if len(effects) == 0 {
		t.say("%s To owe it again: %s", died, again)
		return nil
	}
	t.say("%s", died)
	t.said = append(t.said, effects...)
	t.say("To owe it again then: %s", again)
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
