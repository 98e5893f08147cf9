package main

import (
	"context"
	"math/rand/v2"
	"slices"
	"syscall"
	"time"
)

// storm kills workers and pauses them, one at a time, most often one that is at work.
type storm struct {
	*round
	rng           *rand.Rand
	crew          []*worker
	kills, pauses int
}

const crewSize = 3

const (
	longestPause = 6 * ttl
	workingSQL   = `select holder, lock, key from pawl.runs where ended_at is null and key like '%#%'`
	aheadSQL     = `select exists (select from pawl.runs where lock = $1 and key > $2 and state = 'complete')`
)

// task is what a worker is at.
type task struct{ holder, lock, key string }

func (s *storm) blow(ctx context.Context) error {
	for kill := s.rng.IntN(2) == 0; ; {
		if rest(ctx, time.Duration(100+s.rng.IntN(600))*time.Millisecond) != nil {
			return nil //nolint:nilerr // the work is done
		}
		at, err := s.victim(ctx)
		if err != nil || at.holder == "" {
			continue
		}
		i := slices.IndexFunc(s.crew, func(w *worker) bool { return w.holder() == at.holder })
		if i < 0 {
			continue
		}
		if kill {
			err = s.kill(i)
		} else {
			err = s.pause(ctx, i, at)
		}
		if err != nil {
			return err
		}
		kill = !kill // each in its turn, however often nobody was at work
	}
}

// victim is one of those that are at work.
func (s *storm) victim(ctx context.Context) (t task, err error) {
	rows, err := s.pool.Query(ctx, workingSQL)
	if err != nil {
		return t, err
	}
	defer rows.Close()
	var all []task
	for rows.Next() {
		if err := rows.Scan(&t.holder, &t.lock, &t.key); err != nil {
			return t, err
		}
		all = append(all, t)
	}
	if err := rows.Err(); err != nil || len(all) == 0 {
		return task{}, err
	}
	return all[s.rng.IntN(len(all))], nil
}

// kill takes a worker away without a word, and another takes its place.
func (s *storm) kill(i int) (err error) {
	if err := s.crew[i].end(); err != nil {
		return err
	}
	s.kills++
	s.say("killed %s", s.crew[i].name)
	s.crew[i], err = s.hire(s.crew[i].name)
	return err
}

// pause stops a worker until its successor is a month ahead, so that what it does when it wakes up is as late as can be.
func (s *storm) pause(ctx context.Context, i int, at task) error {
	if err := s.crew[i].signal(syscall.SIGSTOP); err != nil {
		return err
	}
	s.pauses++
	s.say("paused %s", s.crew[i].name)
	longest, cancel := context.WithTimeout(ctx, longestPause)
	defer cancel()
	for ahead := false; !ahead && rest(longest, 50*time.Millisecond) == nil; {
		_ = s.pool.QueryRow(longest, aheadSQL, at.lock, at.key).Scan(&ahead)
	}
	return s.crew[i].signal(syscall.SIGCONT)
}
