package crew

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/internal/pgdev"
	"pawl/migrations"
)

const (
	workerEnv = "PAWL_EXAMPLE_WORKER" // which worker a process is
	patience  = 90 * time.Second      // for a play
)

// Work is what a worker process does until ctx ends.
type Work func(ctx context.Context, pool *pgxpool.Pool, name string) error

// Play is an example as it is played.
type Play struct {
	Flags
	Workers int           // processes; default 3
	Strikes int           // so many kills and so many pauses at least; default 2
	Pause   time.Duration // how long one lasts: longer than a lease
	Env     []string      // of the workers, as NAME=value

	Create func(ctx context.Context, pool *pgxpool.Pool) error         // the tables
	Feed   func(ctx context.Context, pool *pgxpool.Pool) error         // before each fault: more to do
	Done   func(ctx context.Context, pool *pgxpool.Pool) (bool, error) // after the last: whether all is done
	Check  func(ctx context.Context, pool *pgxpool.Pool, f Faults) (Report, error)
}

// Faults are what a play has had.
type Faults struct {
	Seed      uint64 `json:"seed"`
	Kills     int    `json:"kills"`
	Pauses    int    `json:"pauses"`
	Takeovers int    `json:"takeovers"`
	Refusals  int    `json:"refusals"`
}

func (f Faults) String() string {
	return fmt.Sprintf("%d kills, %d pauses, %d takeovers, %d refusals (seed %d)", f.Kills, f.Pauses, f.Takeovers, f.Refusals, f.Seed)
}

// Main runs work and ends the process if it is a worker's. Every binary that plays calls it first.
func Main(work Work) {
	name := os.Getenv(workerEnv)
	if name == "" {
		return
	}
	if err := run(work, name); err != nil {
		fmt.Fprintln(os.Stderr, name+":", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func run(work Work, name string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	pool, err := connect(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := work(ctx, pool, name); ctx.Err() == nil {
		return err
	}
	return nil
}

// connect bounds how long a transaction may stand open and idle: a process that is stopped in the middle of one would hold up
// whoever wants the same rows for as long as it is stopped. Guarded transactions have that from pawl.
func connect(ctx context.Context) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(os.Getenv("DATABASE_URL"))
	if err != nil {
		return nil, err
	}
	cfg.ConnConfig.RuntimeParams["idle_in_transaction_session_timeout"] = "1000"
	return pgxpool.NewWithConfig(ctx, cfg)
}

// Run plays, and checks what has come of it.
func (p Play) Run(ctx context.Context) (err error) {
	told := ctx
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	server, err := pgdev.Start(ctx, pgdev.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	pool, err := pgxpool.New(ctx, server.URL())
	if err != nil {
		return err
	}
	defer pool.Close()
	if _, err := migrations.Up(ctx, pool); err != nil {
		return err
	}
	if err := p.Create(ctx, pool); err != nil {
		return fmt.Errorf("create: %w", err)
	}
	s := &stage{Play: p, url: server.URL(), pool: pool, rand: rand.New(rand.NewPCG(p.Seed, 1)), workers: map[string]*pgdev.Process{}} //nolint:gosec // faults are no secret
	defer s.end()
	if err := s.play(ctx); err != nil {
		return err
	}
	s.end() // nobody writes while it is checked
	f, err := s.faults(ctx)
	if err != nil {
		return err
	}
	r, err := p.Check(ctx, pool, f)
	if err == nil {
		p.Tell(told, r, server.URL())
	}
	return err
}

// stage is a play under way.
type stage struct {
	Play
	url     string
	pool    *pgxpool.Pool
	rand    *rand.Rand
	workers map[string]*pgdev.Process
	had     Faults
}

func (s *stage) play(ctx context.Context) error {
	if s.Workers == 0 {
		s.Workers = 3
	}
	if s.Strikes == 0 {
		s.Strikes = 2
	}
	for i := range s.Workers {
		if err := s.spawn(fmt.Sprintf("worker-%d", i+1)); err != nil {
			return err
		}
	}
	for {
		if s.Feed != nil {
			if err := s.Feed(ctx, s.pool); err != nil {
				return fmt.Errorf("feed: %w", err)
			}
		}
		if err := wait(ctx, 200*time.Millisecond+time.Duration(s.rand.IntN(300))*time.Millisecond); err != nil {
			return err
		}
		f, err := s.faults(ctx)
		if err != nil {
			return err
		}
		if f.Kills >= s.Strikes && f.Pauses >= s.Strikes && f.Takeovers > 0 {
			return s.settle(ctx)
		}
		if err := s.strike(ctx); err != nil {
			return err
		}
	}
}

// settle waits until what was fed is done.
func (s *stage) settle(ctx context.Context) error {
	for {
		done, err := s.Done(ctx, s.pool)
		if done || err != nil {
			return err
		}
		if err := wait(ctx, 50*time.Millisecond); err != nil {
			return fmt.Errorf("it isn't done: %w", err)
		}
	}
}

const (
	holdersSQL = `select distinct holder from pawl.locks where grant_id is not null and expires_at > clock_timestamp() order by holder`
	seenSQL    = `
select (select count(*) from pawl.tenures where how = 'taken_over'), (select count(*) from pawl.refusals)`
)

// strike kills or pauses a worker that holds something, if one does.
func (s *stage) strike(ctx context.Context) error {
	rows, err := s.pool.Query(ctx, holdersSQL)
	if err != nil {
		return err
	}
	var holder string
	var holding []string
	for rows.Next() {
		if err := rows.Scan(&holder); err != nil {
			return err
		}
		if name, _, _ := strings.Cut(holder, "/"); s.workers[name] != nil {
			holding = append(holding, name)
		}
	}
	if err := rows.Err(); err != nil || len(holding) == 0 {
		return err
	}
	name := holding[s.rand.IntN(len(holding))]
	kill := s.rand.IntN(2) == 0
	switch {
	case s.had.Kills < s.Strikes && s.had.Pauses >= s.Strikes:
		kill = true
	case s.had.Pauses < s.Strikes && s.had.Kills >= s.Strikes:
		kill = false
	}
	if kill {
		return s.kill(name)
	}
	return s.pause(ctx, name)
}

func (s *stage) kill(name string) error {
	s.Say("killed %s", name)
	s.had.Kills++
	if err := s.workers[name].Stop(10*time.Second, syscall.SIGKILL); err != nil {
		return err
	}
	return s.spawn(name)
}

func (s *stage) pause(ctx context.Context, name string) error {
	s.Say("paused %s", name)
	s.had.Pauses++
	pid := s.workers[name].Pid()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return err
	}
	err := wait(ctx, s.Pause)
	return errors.Join(err, syscall.Kill(pid, syscall.SIGCONT))
}

func (s *stage) spawn(name string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self)
	cmd.Env = append(append(os.Environ(), workerEnv+"="+name, "DATABASE_URL="+s.url), s.Env...)
	cmd.Stderr = s.say
	s.workers[name], err = pgdev.Spawn(cmd, syscall.SIGKILL)
	return err
}

func (s *stage) end() {
	for _, w := range s.workers {
		_ = w.Stop(10*time.Second, syscall.SIGKILL)
	}
	clear(s.workers)
}

func (s *stage) faults(ctx context.Context) (Faults, error) {
	f := s.had
	f.Seed = s.Seed
	err := s.pool.QueryRow(ctx, seenSQL).Scan(&f.Takeovers, &f.Refusals)
	return f, err
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
