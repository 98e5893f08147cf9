package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/cobra"

	"pawl/examples/settlement"
	"pawl/jobs"
	"pawl/web"
)

// serveFlags are what serve can be told.
type serveFlags struct {
	jobs                           []string
	config                         string
	allowRetire                    int
	untilIdle                      bool
	directURL, artifacts           string
	listen, healthListen, basePath string
	tlsCert, tlsKey                string
	insecure                       bool
	concurrency                    int
	grace, ttl, maxHold, patience  time.Duration
	holder                         string
	pages                          pageFlags
}

// compiledIn are the jobs that this binary brings along.
func compiledIn() map[string]func(*settlement.Settlement) jobs.Job {
	return map[string]func(*settlement.Settlement) jobs.Job{"settlement": (*settlement.Settlement).Job}
}

func (c *cli) serve() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use: "serve", Short: "Serve the lock API and the page, plan and sweep", Args: exactly(),
		Long: `Serve the lock API and the page. Beside it plan what all stored jobs owe, and take over from workers
that died.

It runs the jobs of --config, or of pawl.yaml if that is there; without a file it runs none. Jobs in Go run in
a binary of your own, which embeds pawl: see "A worker" in the README. Any number of both may share a
database; there is no leader. --job settlement also runs the example that is compiled in, for a look around,
as compose.yaml does.

A file is all there is of its app: jobs that the app had and the file hasn't are retired, unless they are so
many that it looks like a mistake. SIGHUP reads the file again. A job that is wrong then keeps its old version,
and the page and the log say so.

The schema must be there: pawl migrate up. On the first SIGTERM or ^C it takes no new work, lets runs
finish within --grace, cancels the rest, which costs them no attempt, and ends; a second signal ends
it at once. Commands are told at once, by TERM, unless their job says on_drain: finish.

As long as no key was ever made (pawl key create) everybody may do everything, so it listens on loopback
only, unless --insecure-no-auth is said. Afterwards nobody is answered without a key, and it may listen
anywhere; give it --tls-cert and --tls-key then, or a proxy that speaks TLS. SIGHUP reads both files
again too.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			log, err := c.logger()
			if err != nil {
				return err
			}
			return c.serveWith(cmd.Context(), f, log)
		},
	}
	fs := cmd.Flags()
	fs.StringSliceVar(&f.jobs, "job", nil, "an example that is compiled in, to run it too: settlement")
	configFlag(fs, &f.config)
	fs.Var(&between{&f.allowRetire, 0, 100_000}, "allow-retire", "how many jobs that are not in the file any more may be retired at once (default 30 %, or 2)")
	fs.BoolVar(&f.untilIdle, "until-idle", false, "work off what is owed at the start, and end")
	fs.StringVar(&f.directURL, "direct-url", "", "the same database past a pooler, for LISTEN (default: --database-url, and polling if that is pooled)")
	artifactsFlag(fs, &f.artifacts)
	fs.StringVar(&f.listen, "listen", "127.0.0.1:8399", "where the API and the page listen; empty: nowhere")
	fs.StringVar(&f.healthListen, "health-listen", "", "where only /healthz, /readyz and /metrics listen")
	fs.StringVar(&f.basePath, "base-path", "/", "the path that everything is below")
	fs.StringVar(&f.tlsCert, "tls-cert", "", "the certificate to serve --listen with, and those that vouch for it, as a PEM file")
	fs.StringVar(&f.tlsKey, "tls-key", "", "the key of the certificate, as a PEM file")
	fs.BoolVar(&f.insecure, "insecure-no-auth", false, "listen beyond loopback without any key: whoever reaches it may hold and release every lock")
	f.pages.add(fs)
	fs.DurationVar(&f.maxHold, "max-hold", 24*time.Hour, "how long one lease of the API may last, renewals included, 1s or more")
	f.concurrency = 10
	fs.Var(&between{&f.concurrency, 1, 1000}, "concurrency", "runs at a time, 1 to 1000")
	fs.DurationVar(&f.grace, "grace", 30*time.Second, "how long runs may take to finish at shutdown")
	fs.DurationVar(&f.patience, "plan-patience", 5*time.Minute, "how long the planner may complete no pass while the database answers, before this process ends; 1m or more")
	fs.DurationVar(&f.ttl, "ttl", 30*time.Second, "the jobs' lease, 1s to 24h")
	fs.StringVar(&f.holder, "holder", "", "this process's name, unique among live ones (default host/pid/random)")
	for flag, name := range map[string]string{
		"direct-url": "PAWL_DIRECT_URL", "listen": "PAWL_LISTEN", "health-listen": "PAWL_HEALTH_LISTEN", "base-path": "PAWL_BASE_PATH",
		"concurrency": "PAWL_CONCURRENCY", "grace": "PAWL_GRACE", "plan-patience": "PAWL_PLAN_PATIENCE", "max-hold": "PAWL_MAX_HOLD",
		"tls-cert": "PAWL_TLS_CERT", "tls-key": "PAWL_TLS_KEY",
	} {
		variable(fs, flag, name)
	}
	return cmd
}

// plainPath is what a path reads the same with and without escapes.
var plainPath = regexp.MustCompile(`^[A-Za-z0-9._~/-]+$`)

// check refuses what can be refused without a database.
func (f *serveFlags) check() error {
	known := compiledIn()
	names := strings.Join(slices.Sorted(maps.Keys(known)), ", ")
	for _, name := range f.jobs {
		if known[name] == nil {
			return usage("there is no job %q: this binary has the example %s, and jobs of yours run in a binary of your own", name, names)
		}
	}
	if len(f.jobs) > 0 && f.config != "" {
		return usage("--job and --config are both given: name the example in the file, as a job of kind go with the handler settlement")
	}
	switch {
	case f.ttl < time.Second || f.ttl > 24*time.Hour:
		return usage("--ttl is %s: use 1s to 24h", f.ttl)
	case f.patience < time.Minute:
		return usage("--plan-patience is %s: use 1m or more, such as 5m", f.patience)
	case f.grace <= 0:
		return usage("--grace is %s: use a positive duration, such as 30s", f.grace)
	case !strings.HasPrefix(f.basePath, "/"):
		return usage("--base-path is %q: begin it with /, as in /pawl", f.basePath)
	case f.basePath != "/" && path.Clean(f.basePath) != strings.TrimSuffix(f.basePath, "/") || !plainPath.MatchString(f.basePath):
		return usage("--base-path is %q: use a plain path, as in /pawl", f.basePath)
	case f.maxHold < time.Second:
		return usage("--max-hold is %s: use 1s or more, such as 24h", f.maxHold)
	case f.tlsCert != "" && f.tlsKey == "":
		return usage("--tls-cert is %q without --tls-key: give the file of its key too", f.tlsCert)
	case f.tlsCert == "" && f.tlsKey != "":
		return usage("--tls-key is %q without --tls-cert: give the file of its certificate too", f.tlsKey)
	}
	if err := f.pages.check(); err != nil || f.listen == "" {
		return err
	}
	return f.checkListen(true) // only whether it is an address: the rest depends on whether there are keys
}

// checkListen refuses an address that other machines reach, as long as no key was ever made.
func (f *serveFlags) checkListen(keys bool) error {
	if err := web.CheckListen(f.listen, f.insecure, keys); err != nil {
		return &coded{codeUsage, err}
	}
	return nil
}

func (c *cli) logger() (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.logLevel)); err != nil {
		return nil, usage("--log-level is %q: use debug, info, warn or error", c.logLevel)
	}
	opts := &slog.HandlerOptions{Level: level}
	format := c.logFormat
	if format == "" {
		format = map[bool]string{true: "text", false: "json"}[c.p.redraw]
	}
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(c.p, opts)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(c.p, opts)), nil
	}
	return nil, usage("--log-format is %q: use text or json", c.logFormat)
}

// serveWith runs until ctx ends and everything is drained.
func (c *cli) serveWith(ctx context.Context, f serveFlags, log *slog.Logger) error {
	file, err := c.serveFile(ctx, f, log)
	if err != nil {
		return err
	}
	db, err := c.openMigrated(ctx, int32(f.concurrency)+2)
	if err != nil {
		return err
	}
	defer db.pool.Close()
	var direct *database
	switch {
	case f.directURL != "":
		if direct, err = connect(ctx, f.directURL, 2); err != nil {
			return fmt.Errorf("--direct-url: %w", err)
		}
		defer direct.pool.Close()
		if direct.pooled {
			return usage("--direct-url leads to a pooler too: give the server's own address, or leave it out and pawl polls")
		}
	case db.pooled:
		log.WarnContext(ctx, "the database is behind a pooler: polling, since LISTEN doesn't get through one in transaction mode; --direct-url shows a way past it")
	}
	if len(f.jobs) == 0 && file == nil {
		log.InfoContext(ctx, "no jobs: this process serves the page, plans and sweeps; jobs run in binaries of your own")
	}
	s, err := newService(ctx, db, direct, f, file, log)
	if err != nil {
		return err
	}
	err = s.run(ctx)
	s.close()
	log.InfoContext(ctx, "stopped")
	return err
}

const exampleSQL = `
select current_database(), current_user, count(*) > 0, coalesce(bool_and(has_schema_privilege(n.oid, 'USAGE')
       and has_table_privilege(c.oid, 'SELECT') and has_table_privilege(c.oid, 'INSERT') and has_table_privilege(c.oid, 'UPDATE')), false)
  from pg_namespace n join pg_class c on c.relnamespace = n.oid where n.nspname = 'pawl_demo' and c.relname = 'settlement'`

// prepareExample makes the tables of the settlement where they are absent. A worker without the right to make them
// may use those that are there.
func prepareExample(ctx context.Context, db *database, example *settlement.Settlement) error {
	var name, user string
	var there, use bool
	if err := db.pool.QueryRow(ctx, exampleSQL).Scan(&name, &user, &there, &use); err != nil {
		return err
	}
	switch {
	case there && use:
		return nil
	case there:
		return usage("the settlement's own tables are in the schema pawl_demo, which this account may not use: grant it usage on the schema and all on its tables")
	}
	err := example.Create(ctx, db.pool)
	var pg *pgconn.PgError
	switch {
	case errors.As(err, &pg) && pg.Code == "42501":
		return usage("the example keeps its tables in the schema pawl_demo, which %s may not make, and pawl_worker doesn't grant that: for the "+
			"first start have the database's owner run: grant create on database %s to %s",
			user, pgx.Identifier{name}.Sanitize(), pgx.Identifier{user}.Sanitize())
	case err != nil:
		return fmt.Errorf("the settlement's own tables can't be made: %w", err)
	}
	return nil
}

// newRunner has the named jobs, or those of the file.
func newRunner(cfg jobs.Config, f serveFlags, file *served, example *settlement.Settlement) (*jobs.Runner, error) {
	all := file.jobs()
	for _, name := range f.jobs {
		j := compiledIn()[name](example)
		j.TTL = cmp.Or(f.ttl, j.TTL)
		all = append(all, j)
	}
	r, err := jobs.New(cfg)
	if err != nil {
		return nil, err
	}
	for _, j := range all {
		err = errors.Join(err, r.Add(j))
	}
	return r, err
}
