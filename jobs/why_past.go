package jobs

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"pawl/fence"
)

// moment is what happened at a time. What it tells beyond its sentence is for those who may see payloads.
type moment struct {
	at      time.Time
	text    string
	payload string
}

// past tells what has happened, in the order of time: how each revision came to be owed, the runs, and what people did.
func (t *teller) past(periods []whyPeriod) error {
	first, last := periods[0], periods[len(periods)-1]
	acts, err := ask[whyAct](t, whyActsSQL, pgx.NamedArgs{"since": first.ScheduledAt, "period": last.whole()})
	if err != nil {
		return err
	}
	runs, err := ask[whyRun](t, whyRunsSQL, pgx.NamedArgs{"waits": waitsForSlot})
	if err != nil {
		return err
	}
	away, err := ask[whyAway](t, whyAwaySQL, pgx.NamedArgs{"waits": waitsForSlot})
	if err != nil {
		return err
	}
	troubled, err := t.shardRuns(last)
	if err != nil {
		return err
	}
	var line []moment
	for _, a := range acts {
		line = append(line, moment{at: a.At, text: a.sentence()})
		if a.Action == "effect_decide" {
			t.decided = a.At
		}
	}
	for i, x := range periods {
		begun := moment{text: t.begin(x)}
		if i > 0 {
			begun.at = begunAt(x, acts, runs)
		}
		if words := paramWords([]byte(x.Params)); words != "" {
			begun.payload = "It was given " + words + "."
		}
		line = append(append(line, begun), turnedAway(x, away)...)
		line = append(line, t.runs(x, runs, i == len(periods)-1)...)
	}
	line = append(line, troubled...)
	slices.SortStableFunc(line, func(a, b moment) int { return a.at.Compare(b.at) })
	for _, m := range line {
		t.say("%s", m.text)
		if m.payload != "" {
			t.payload("%s", m.payload)
		}
	}
	return nil
}

// begunAt is about when a later revision came to be owed: at the act that did it, or just before its first run.
func begunAt(x whyPeriod, acts []whyAct, runs []whyRun) time.Time {
	for _, a := range acts {
		if a.Action == actRerun && a.Revision == strconv.Itoa(x.Revision) {
			return a.At
		}
	}
	for _, r := range runs {
		if r.Revision == x.Revision {
			return r.StartedAt.Add(-1)
		}
	}
	last := x.ScheduledAt
	for _, r := range runs {
		last = later(last, r.StartedAt)
	}
	for _, a := range acts {
		last = later(last, a.At)
	}
	return last
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// begin tells how it came to be owed.
func (t *teller) begin(x whyPeriod) string {
	of := ""
	if x.Revision > 1 {
		of = fmt.Sprintf(" (revision %d)", x.Revision)
	}
	if x.Ticks > 1 && x.LastAt != nil {
		return fmt.Sprintf("%s %s is one of %d ticks from %s to %s, which share one row.", t.job, t.key, x.Ticks, stamp(x.ScheduledAt), stamp(*x.LastAt))
	}
	switch x.Origin {
	case originSchedule:
		return fmt.Sprintf("%s %s%s was scheduled for %s.", t.job, t.key, of, stamp(x.ScheduledAt))
	case originBackfill:
		return fmt.Sprintf("%s %s%s was scheduled for %s and owed by a backfill.", t.job, t.key, of, stamp(x.ScheduledAt))
	case originRerun:
		return fmt.Sprintf("%s %s was owed again as revision %d by a rerun.", t.job, t.key, x.Revision)
	case originTrigger:
		return fmt.Sprintf("%s %s%s was owed by a trigger, for %s.", t.job, t.key, of, stamp(x.ScheduledAt))
	case "outbox":
		return fmt.Sprintf("%s %s%s is a message, which was enqueued at %s.", t.job, t.key, of, stamp(x.ScheduledAt))
	case "shard":
		return fmt.Sprintf("%s %s%s is a shard of %s %s, %s: a run of that period has listed it.", t.job, t.key, of, t.job, x.Parent, shardNo(x))
	}
	return fmt.Sprintf("%s %s%s was owed at %s (%s).", t.job, t.key, of, stamp(x.ScheduledAt), x.Origin)
}

// sentence tells what a person did.
func (a whyAct) sentence() string {
	text := fmt.Sprintf("At %s %s %s", stamp(a.At), a.Actor, a.did())
	if a.Reason != "" {
		text += ": " + strings.TrimSuffix(a.Reason, ".")
	}
	return text + "."
}

func (a whyAct) did() string {
	switch a.Action {
	case actTrigger:
		return "triggered it"
	case actRetry:
		return "owed it again, with all its retries"
	case actRerun:
		return "owed it again as revision " + a.Revision
	case actCancel:
		return "cancelled it"
	case "effect_decide":
		return "decided that " + effectWords(a.Effect, a.EffectKey) + " is " + a.Is
	case "pause":
		if until, err := time.Parse(time.RFC3339Nano, a.Until); err == nil && !until.IsZero() {
			return "paused the job until " + stamp(until)
		}
		return "paused the job"
	case "resume":
		return "resumed the job"
	case "backfill":
		return "owed the job's periods from " + a.From + " to " + a.To + " by a backfill"
	case "retire":
		return "retired the job"
	case "rename":
		return "renamed the job"
	}
	return "did this to it: " + strings.ReplaceAll(a.Action, "_", " ")
}

func (t *teller) runs(x whyPeriod, runs []whyRun, last bool) (line []moment) {
	listed := false
	for _, r := range runs {
		if r.Revision != x.Revision {
			continue
		}
		m := moment{at: r.StartedAt, text: r.sentence("Run "+strconv.Itoa(r.Attempt), ran(r.State)), payload: t.lastWords(r, last)}
		if x.Shards != nil && r.State == stateComplete {
			m.text = x.shardsOf(r, listed)
			listed = listed || r.opened(x)
		}
		line = append(line, m)
	}
	return line
}

// sentence tells a run, from its beginning to its end.
func (r whyRun) sentence(who, ended string) string {
	text := fmt.Sprintf("%s began at %s on %s with token %s", who, stamp(r.StartedAt), or(r.Holder, "nobody known"), fence.FormatSeq(r.Token))
	if r.EndedAt == nil {
		text += " and is under way"
	} else {
		text += fmt.Sprintf(" and %s after %s", ended, r.EndedAt.Sub(r.StartedAt).Round(time.Millisecond))
	}
	if r.Error != "" {
		text += ": " + firstLine(r.Error)
	}
	return text + "."
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return strings.TrimSuffix(line, ".")
}

// lastWords tells what a run had said whose process died: nobody else tells that.
func (t *teller) lastWords(r whyRun, last bool) string {
	if !r.Partial || r.Said == nil || r.EndedAt == nil {
		return ""
	}
	of := ""
	if !last {
		of = fmt.Sprintf(" --revision %d", r.Revision)
	}
	lines := strings.Split(strings.TrimSpace(strings.ToValidUTF8(string(r.LastWords), "")), "\n")
	return fmt.Sprintf("Its output is incomplete, %d bytes; the last that is kept: %q. All of it: pawl job output %s %s%s --attempt %d", *r.Said, lines[len(lines)-1], t.job, t.key, of, r.Attempt)
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
	case stateCancelled:
		return "was cancelled"
	}
	return state
}
