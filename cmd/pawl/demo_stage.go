package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"pawl/examples/settlement"
	"pawl/internal/pgdev"
	"pawl/migrations"
)

// stage is the database that the demo plays on, and who plays.
type stage struct {
	p       *printer
	server  *pgdev.Server // nil: the user's own database
	url     string
	db      *database
	alone   *pgx.Conn // holds what keeps a second demo away
	example *settlement.Settlement
	plan    plan
	crew    []*worker
	page    *openPage
	last    scene
}

// plan is what is owed. The last tick was half an hour to an hour and a half ago, so that none falls into the story.
type plan struct {
	schedule string
	start    time.Time // ticks after it are owed
	days     []string  // the periods, oldest first
	lastDay  time.Time
}

// owedDays is how many days the story has.
const owedDays = 5

func newPlan(now time.Time) plan {
	last := now.UTC().Add(-30 * time.Minute).Truncate(time.Hour)
	p := plan{
		schedule: fmt.Sprintf("0 %d * * *", last.Hour()),
		start:    last.AddDate(0, 0, 1-owedDays).Add(-time.Second),
		lastDay:  last.AddDate(0, 0, -1),
	}
	for i := range owedDays {
		p.days = append(p.days, last.AddDate(0, 0, i-owedDays).Format(time.DateOnly))
	}
	return p
}

// setStage finds or starts a database and makes sure that no other demo uses it.
func (c *cli) setStage(ctx context.Context, f demoFlags) (s *stage, err error) {
	s = &stage{p: c.p, url: c.databaseURL, example: settlement.New(settlement.Config{})}
	defer func() { //nolint:contextcheck // it ends what is there though ctx is over
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.url == "" {
		if err = s.startServer(ctx, c, f.dataDir); err != nil {
			return s, err
		}
	} else if f.dataDir != "" {
		return s, usage("--data-dir and --database-url exclude each other: with a database of yours the demo starts none")
	}
	if s.db, err = connect(ctx, s.url, 8); err != nil {
		return s, err
	}
	if s.server == nil {
		cc := s.db.pool.Config().ConnConfig
		c.p.tell("using the database %q at %s", cc.Database, where(cc))
	}
	if s.db.pooled {
		c.p.note("the database is behind a pooler: polling, since LISTEN doesn't get through one in transaction mode")
	}
	return s, s.keepOthersAway(ctx)
}

func (s *stage) startServer(ctx context.Context, c *cli, dir string) (err error) {
	if dir, err = demoDir(c.getenv, dir); err != nil {
		return err
	}
	c.p.tell("starting a Postgres of the demo's own in %s", dir)
	s.server, err = pgdev.Start(ctx, pgdev.Options{Dir: dir, BinDir: c.getenv("PAWL_PG_BIN"), Durable: true})
	if err == nil {
		s.url, err = s.server.Database(ctx, "demo")
	}
	switch {
	case err == nil || ctx.Err() != nil || errors.Is(err, pgdev.ErrNoBinaries):
		return err
	case strings.Contains(err.Error(), "in use by another server"):
		return errDirInUse(dir)
	case hasData(dir):
		return fmt.Errorf("%w; if what is in %s is damaged or another Postgres version's, remove that directory", err, dir)
	}
	return fmt.Errorf("%w; another directory can be named with --data-dir", err)
}

// aloneSQL asks which of the settings this server has: transaction_timeout came with Postgres 17.
const aloneSQL = `
begin; select set_config(name, '0', true) from pg_settings
 where name in ('idle_in_transaction_session_timeout', 'transaction_timeout', 'statement_timeout')`

// keepOthersAway holds a lock for as long as the demo lasts: two of them would drop each other's tables. It lives in
// a transaction, since a session's lock would strand behind a pooler.
func (s *stage) keepOthersAway(ctx context.Context) (err error) {
	if s.alone, err = pgx.ConnectConfig(ctx, s.db.pool.Config().ConnConfig); err != nil {
		return err
	}
	if _, err = s.alone.Exec(ctx, aloneSQL); err != nil {
		return err
	}
	var got bool
	err = s.alone.QueryRow(ctx, `select pg_try_advisory_xact_lock(hashtextextended('pawl demo', 0))`).Scan(&got)
	if err == nil && !got {
		return conflict("another pawl demo uses this database: end it first, or name another one")
	}
	return err
}

const marksSQL = `
select nspname, coalesce(obj_description(oid, 'pg_namespace'), '') from pg_namespace where nspname in ('pawl', 'pawl_demo')`

// refuseForeign refuses schemas that the demo hasn't made.
func (s *stage) refuseForeign(ctx context.Context) error {
	rows, err := s.db.pool.Query(ctx, marksSQL)
	if err != nil {
		return err
	}
	var name, mark string
	_, err = pgx.ForEachRow(rows, []any{&name, &mark}, func() error {
		if mark != settlement.Mark {
			return conflict("the schema %q in this database wasn't made by the demo, which leaves it alone: give another database, "+
				"or no --database-url, and the demo starts one of its own", name)
		}
		return nil
	})
	return err
}

// drop removes both schemas. They are the demo's own.
func (s *stage) drop(ctx context.Context) error {
	if err := s.refuseForeign(ctx); err != nil {
		return err
	}
	if err := migrations.Down(ctx, s.db.pool); err != nil {
		return err
	}
	return s.example.Drop(ctx, s.db.pool)
}

func (s *stage) clean(ctx context.Context) error {
	if err := s.drop(ctx); err != nil {
		return err
	}
	return s.p.dropped("what the demo had made in this database is gone", "pawl", "pawl_demo")
}

// prepare makes everything anew. The mark comes with the schema, so that a demo that is stopped at any moment leaves
// nothing that the next one would refuse.
func (s *stage) prepare(ctx context.Context, payments int) error {
	if err := s.drop(ctx); err != nil {
		return err
	}
	if _, err := s.db.pool.Exec(ctx, "create schema pawl; comment on schema pawl is '"+settlement.Mark+"'"); err != nil {
		return err
	}
	if _, err := migrations.Up(ctx, s.db.pool); err != nil {
		return err
	}
	if err := s.example.Create(ctx, s.db.pool); err != nil {
		return err
	}
	var now time.Time
	if err := s.db.pool.QueryRow(ctx, "select clock_timestamp()").Scan(&now); err != nil {
		return err
	}
	s.plan = newPlan(now)
	bar := s.p.progress("making payments")
	defer bar.end()
	bar.at(0, int64(payments))
	err := s.example.Generate(ctx, s.db.pool, settlement.Input{
		Payments: payments, Days: owedDays, Last: s.plan.lastDay,
		Progress: func(done, total int) { bar.at(int64(done), int64(total)) },
	})
	if err == nil {
		s.p.tell("made %s of %d days", plural(int64(payments), "payment", "payments"), owedDays)
	}
	return err
}

// close ends the workers, then the page, then the server. It takes as long as it takes: the context may be over.
func (s *stage) close() error {
	s.dismiss()
	if s.page != nil {
		s.page.close()
	}
	if s.alone != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = s.alone.Close(ctx) // its lock goes with it
	}
	if s.db != nil {
		s.db.pool.Close()
	}
	if s.server != nil {
		return s.server.Stop()
	}
	return nil
}
