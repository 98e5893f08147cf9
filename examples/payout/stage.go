package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/examples/internal/crew"
	"pawl/internal/pgdev"
	"pawl/jobs"
	"pawl/migrations"
)

// options are what the command line says.
type options struct {
	crew.Flags
	rounds, merchants int
	broken            bool
}

const (
	crewSize = 3
	patience = 2 * time.Minute // for one round

	schemaSQL = `
create schema payout;
create table payout.owed (day text, merchant text, cents bigint not null, primary key (day, merchant));
create table payout.paid (day text, merchant text, cents bigint not null, ref text not null, token bigint not null, primary key (day, merchant))`

	// Amounts that no rounding would hide.
	fillSQL = `
insert into payout.owed select $1, 'merchant-' || to_char(n, 'FM00000'), 1 + ('x' || substr(md5($3::text || $1 || n::text), 1, 5))::bit(20)::int from generate_series(1, $2::int) n`

	holderSQL   = `select holder, token from pawl.locks where name = 'job:payout' and grant_id is not null`
	successor   = `select exists (select from pawl.locks where name = 'job:payout' and token > $1 and grant_id is not null)`
	completeSQL = `select exists (select from pawl.periods where job = $1 and key = $2 and state = 'complete')`
	checkedSQL  = `select exists (select from pawl.periods where job = 'payout-check' and key = $1 and state = 'complete')`
)

// stage is all that there is while the example runs.
type stage struct {
	options
	pool     *pgxpool.Pool
	provider *provider
	rng      *rand.Rand
	crew     []*worker
	days     []string
	moments  int
	result   result
}

func (o options) run(ctx context.Context) (r result, err error) {
	server, err := pgdev.Start(ctx, pgdev.Options{})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	url, err := server.Database(ctx, "payout")
	if err != nil {
		return r, err
	}
	s := &stage{options: o, rng: rand.New(rand.NewPCG(o.Seed, 2))}
	s.result.Seed, s.result.Rounds = o.Seed, o.rounds
	if s.pool, err = pgxpool.New(ctx, url); err != nil {
		return r, err
	}
	defer s.pool.Close()
	if s.provider, err = startProvider(ctx, o.Seed); err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, s.provider.stop(context.WithoutCancel(ctx))) }()
	defer func() { err = errors.Join(err, s.dismiss()) }()
	if err := s.prepare(ctx, url); err != nil {
		return r, err
	}
	if err := s.play(ctx); err != nil {
		return r, err
	}
	o.Tell(ctx, s.result, url)
	return s.result, nil
}

func (s *stage) prepare(ctx context.Context, url string) error {
	if _, err := migrations.Up(ctx, s.pool); err != nil {
		return err
	}
	if _, err := s.pool.Exec(ctx, schemaSQL); err != nil {
		return err
	}
	today := time.Now().UTC().Truncate(24 * time.Hour)
	for n := s.rounds; n > 0; n-- {
		day := today.AddDate(0, 0, 1-n).Format(time.DateOnly)
		s.days = append(s.days, day)
		third := s.merchants / 3
		s.provider.marks[day] = []int{2 + s.rng.IntN(third), 2 + third + s.rng.IntN(third)}
		if _, err := s.pool.Exec(ctx, fillSQL, day, s.merchants, fmt.Sprint(s.Seed)); err != nil {
			return err
		}
	}
	env := []string{
		"DATABASE_URL=" + url, providerEnv + "=" + s.provider.url,
		startEnv + "=" + today.AddDate(0, 0, 1-s.rounds).Add(-time.Hour).Format(time.RFC3339),
	}
	if s.broken {
		env = append(env, brokenEnv+"=1")
	}
	for i := range crewSize {
		w := &worker{name: fmt.Sprint("worker-", i+1), env: env}
		if err := w.start(); err != nil {
			return err
		}
		s.crew = append(s.crew, w)
	}
	return nil
}

// play lets the days be paid, with two faults in each, in either order, and compares the books.
func (s *stage) play(ctx context.Context) error {
	for i, day := range s.days {
		ctx, cancel := context.WithTimeout(ctx, patience)
		faults := []func(context.Context, string) error{s.killOne, s.stopOne}
		if s.rng.IntN(2) == 0 {
			faults[0], faults[1] = faults[1], faults[0]
		}
		for _, fault := range faults {
			if err := fault(ctx, day); err != nil {
				cancel()
				return fmt.Errorf("%s: %w", day, err)
			}
		}
		err := s.until(ctx, completeSQL, jobName, day)
		cancel()
		if err != nil {
			return fmt.Errorf("%s isn't paid: %w", day, err)
		}
		s.Say("%s is paid (%d of %d)", day, i+1, len(s.days))
	}
	key, err := jobs.Trigger(ctx, s.pool, checker, jobs.TriggerConfig{Actor: "example"})
	if err != nil {
		return err
	}
	if err := s.until(ctx, checkedSQL, key); err != nil {
		return err
	}
	p := s.provider
	p.mu.Lock()
	defer p.mu.Unlock()
	s.result.Lost, s.result.Slow, s.result.Replayed = p.lost, p.slow, p.replayed
	return s.result.compare(ctx, s.pool, p.ledger)
}

// caught waits for the payment of a day that a fault is meant for, and returns the worker whose call it is.
func (s *stage) caught(ctx context.Context, day string) (w *worker, token int64, err error) {
	select {
	case <-ctx.Done():
		return nil, 0, fmt.Errorf("the payment to hit has not come: %w", ctx.Err())
	case at := <-s.provider.arrived:
		if at != day {
			return nil, 0, fmt.Errorf("%s is paid before its time", at)
		}
	}
	var holder string
	if err := s.pool.QueryRow(ctx, holderSQL).Scan(&holder, &token); err != nil {
		return nil, 0, fmt.Errorf("nobody holds the lock: %w", err)
	}
	for _, w := range s.crew {
		if w.holder() == holder {
			return w, token, nil
		}
	}
	return nil, 0, fmt.Errorf("%s holds the lock, who is not of the crew", holder)
}

// anyMoment lets every other fault come a little later than with the call just under way.
func (s *stage) anyMoment(ctx context.Context) error {
	if s.moments++; s.moments%2 == 1 {
		return nil
	}
	t := time.NewTimer(time.Duration(s.rng.IntN(30)) * time.Millisecond)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// killOne kills the holder; another worker takes its place.
func (s *stage) killOne(ctx context.Context, day string) error {
	w, token, err := s.caught(ctx, day)
	if err != nil {
		return err
	}
	if err := errors.Join(s.anyMoment(ctx), w.kill()); err != nil {
		return err
	}
	s.result.Kills++
	s.Say("%s: killed %s, which held the lock", day, w.name)
	if err := s.until(ctx, successor, token); err != nil {
		return fmt.Errorf("nobody takes over: %w", err)
	}
	return w.start()
}

// stopOne stops the holder, and lets it go on when it has a successor.
func (s *stage) stopOne(ctx context.Context, day string) error {
	w, token, err := s.caught(ctx, day)
	if err != nil {
		return err
	}
	if err := errors.Join(s.anyMoment(ctx), w.signal(syscall.SIGSTOP)); err != nil {
		return err
	}
	s.result.Pauses++
	s.Say("%s: stopped %s, which held the lock", day, w.name)
	err = s.until(ctx, successor, token)
	if err != nil {
		err = fmt.Errorf("nobody takes over: %w", err)
	}
	return errors.Join(err, w.signal(syscall.SIGCONT))
}

// until asks the database until it says yes.
func (s *stage) until(ctx context.Context, sql string, args ...any) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		var yes bool
		if err := s.pool.QueryRow(ctx, sql, args...).Scan(&yes); err != nil || yes {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

func (s *stage) dismiss() (err error) {
	for _, w := range s.crew {
		err = errors.Join(err, w.kill())
	}
	return err
}
