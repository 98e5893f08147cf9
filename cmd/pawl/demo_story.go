package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"pawl/fence"
)

const (
	lookEvery   = 20 * time.Millisecond
	mostSilence = time.Minute      // without anything new the demo has failed
	mostSleep   = 30 * time.Second // that a stopped worker is left stopped
	killDay     = 1                // of plan.days: the second
	stopDay     = 3                // the fourth
	soon        = 3                // batches committed before anything is done to a worker
)

// story tells what the rows say, and does to the workers what the story wants.
type story struct {
	*stage
	told     map[int64]sceneRun // runs that were told of, by token
	owed     bool               // the days owed were told
	refusals int                // that were told

	victim, sleeper int64 // tokens of the run that was killed and of the one that was stopped
	slept           time.Time
	woken           bool
	bar             *progress
	barOf           int64
}

// tellStory looks at the rows until the story is over.
func (s *stage) tellStory(ctx context.Context) error {
	t := &story{stage: s, told: map[int64]sceneRun{}}
	defer s.p.draw("")
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	news, before := time.Now(), ""
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
		now, err := s.look(ctx)
		if err != nil {
			return err
		}
		s.last = now
		if state := fmt.Sprint(now.periods, now.runs, now.refusals); state != before {
			news, before = time.Now(), state
		}
		over, err := t.turn(now)
		if err != nil || over {
			return err
		}
		if time.Since(news) > mostSilence {
			return fmt.Errorf("nothing has happened for %s; the workers say: %s", mostSilence, s.words())
		}
	}
}

// words are the last words of all workers.
func (s *stage) words() string {
	var all []string
	for _, w := range s.crew {
		if said := w.output.String(); said != "" {
			all = append(all, w.name+": "+said)
		}
	}
	return strings.Join(all, "; ")
}

// turn tells what is new and acts. True: the story is over.
func (t *story) turn(now scene) (over bool, err error) {
	for _, w := range t.crew {
		if w.gone() {
			return false, fmt.Errorf("%s has ended by itself: %s", w.holder(), w.output)
		}
	}
	if !t.owed && len(now.periods) >= owedDays {
		t.owed = true
		t.p.tell("(a) five days are owed: %s", strings.Join(t.plan.days, ", "))
	}
	for _, r := range now.runs {
		t.tellRun(r)
	}
	for _, r := range now.refusals[t.refusals:] {
		t.tellRefusal(now, r)
	}
	t.refusals = len(now.refusals)
	if err := errors.Join(t.act(now), t.wake(now)); err != nil {
		return false, err
	}
	return now.complete() == owedDays && t.sleeper != 0 && t.woken && (now.refused(t.sleeper) || time.Since(t.slept) > 2*mostSleep), nil
}

func (t *story) tellRun(r sceneRun) {
	was, known := t.told[r.Token]
	t.told[r.Token] = r
	if !known {
		t.p.tell("%s takes %s: run %d, token %s%s", r.Holder, r.Key, r.Attempt, fence.FormatSeq(r.Token), t.resumes(r))
	}
	if r.State == "running" {
		t.advance(r)
		return
	}
	if known && was.State == r.State {
		return
	}
	if t.barOf == r.Token {
		t.p.draw("")
	}
	switch r.State {
	case "complete":
		t.p.tell("%s completes %s in %s: result, marker and release in one commit", r.Holder, r.Key, since(&r.StartedAt, r.EndedAt))
	case "lost":
		t.p.tell("%s has lost %s: its lease ended without a word after batch %d; the day is owed again", r.Holder, r.Key, r.Batch)
	default:
		t.p.tell("%s ends run %d of %s: %s", r.Holder, r.Attempt, r.Key, r.State)
	}
}

// resumes says where a later run of a period goes on.
func (t *story) resumes(r sceneRun) string {
	if !r.Resumed {
		return ""
	}
	batch := 0
	for _, old := range t.told {
		if old.Key == r.Key && old.Attempt < r.Attempt {
			batch = max(batch, old.Batch)
		}
	}
	return fmt.Sprintf("; it goes on from the checkpoint after batch %d", batch)
}

// advance moves the bar of the run that is under way.
func (t *story) advance(r sceneRun) {
	if t.barOf != r.Token {
		t.bar, t.barOf = t.p.progress(r.Key+" by "+r.Holder), r.Token
	}
	t.bar.at(r.Done, r.Total)
}

func (t *story) tellRefusal(now scene, r sceneRefusal) {
	by := "its own clock says so, before anything is sent"
	if r.Statement == lateWrite {
		by = fmt.Sprintf("it writes past that check, and the database turns it away: token %s of %s is current",
			fence.FormatSeq(r.Current), now.holder(r.Current))
	}
	t.p.tell("%s the write of %s under token %s, %.1fs after its lease: %s",
		t.p.coloured(red, "REFUSED:"), clean(r.Holder), fence.FormatSeq(r.Token), r.Late, by)
}

// act kills the worker of the second day in the middle of a batch, and stops that of the fourth between two.
func (t *story) act(now scene) error {
	for _, r := range now.runs {
		if r.State != "running" || r.Attempt != 1 || r.Batch < soon {
			continue
		}
		w := t.find(r.Holder)
		switch {
		case w == nil:
		case r.Key == t.plan.days[killDay] && t.victim == 0 && now.inside[r.Token]:
			t.victim = r.Token
			t.p.tell("(b) %s %s in the middle of batch %d: its rows are written, nothing is committed",
				t.p.coloured(yellow, "SIGKILL to"), r.Holder, r.Batch+1)
			return w.kill()
		case r.Key == t.plan.days[stopDay] && t.sleeper == 0 && !now.inside[r.Token]:
			t.sleeper, t.slept = r.Token, time.Now()
			t.p.tell("(c) %s %s after batch %d: it stands still, and its lease of %s runs out",
				t.p.coloured(yellow, "SIGSTOP to"), r.Holder, r.Batch, demoTTL)
			return w.signal(syscall.SIGSTOP)
		}
	}
	return nil
}

// wake wakes the stopped worker when another one has completed its day.
func (t *story) wake(now scene) error {
	if t.sleeper == 0 || t.woken {
		return nil
	}
	done := now.periods[stopDay].State == "complete"
	if !done && time.Since(t.slept) < mostSleep {
		return nil
	}
	t.woken = true
	holder := now.holder(t.sleeper)
	if done {
		t.p.tell("%s %s: it wakes up in the middle of a day that another has completed, and goes on writing",
			t.p.coloured(yellow, "SIGCONT to"), holder)
	} else {
		t.p.tell("SIGCONT to %s: nobody has taken over in %s, which is wrong", holder, mostSleep)
	}
	if w := t.find(holder); w != nil {
		return w.signal(syscall.SIGCONT)
	}
	return nil
}
