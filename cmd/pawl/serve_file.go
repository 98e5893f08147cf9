package main

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/examples/settlement"
	"pawl/jobs"
	"pawl/jobs/alert"
	"pawl/jobs/jobfile"
)

// exampleHandler is the handler of kind go that this binary brings along.
const exampleHandler = "settlement"

// served is the job file that a process runs. Nil: there is none.
type served struct {
	name   string
	getenv func(string) string
	allow  int
	log    *slog.Logger
	file   *jobfile.File
	host   jobfile.Host
	pools  map[string]*pgxpool.Pool // by connection string
	loaded []jobs.Job

	mu     sync.Mutex
	issues []string // what is wrong with the last version, for the page
}

// serveFile reads the job file that was named, or pawl.yaml if it is there. What is wrong with it ends the command.
func (c *cli) serveFile(ctx context.Context, f serveFlags, log *slog.Logger) (*served, error) {
	name := f.config
	if name == "" {
		_, err := os.Stat(defaultConfig)
		if errors.Is(err, fs.ErrNotExist) || len(f.jobs) > 0 {
			return nil, nil //nolint:nilnil // no file is no error: then it runs no jobs of one
		}
		name = defaultConfig
	}
	file, issues, err := readConfig(name, c.getenv)
	if err != nil {
		return nil, err
	}
	if jobfile.Failed(issues, false) {
		c.p.note("%s", cleanLines(trimLine(jobfile.Lines(issues))))
		return nil, said(codeUsage)
	}
	s := &served{name: name, getenv: c.getenv, allow: f.allowRetire, log: log, file: file, pools: map[string]*pgxpool.Pool{}}
	s.tell(ctx, issues)
	return s, nil
}

// tell logs what is said of the file; notes are for pawl lint.
func (s *served) tell(ctx context.Context, issues []jobfile.Issue) {
	for _, i := range issues {
		switch i.Severity {
		case jobfile.Error:
			s.log.ErrorContext(ctx, "job file is wrong", "issue", i.String())
		case jobfile.Warning:
			s.log.WarnContext(ctx, "job file is doubtful", "issue", i.String())
		default:
		}
	}
}

func (s *served) app() string {
	if s == nil {
		return ""
	}
	return s.file.App
}

func (s *served) channels() []alert.Channel {
	if s == nil {
		return nil
	}
	return s.file.Alerting()
}

func (s *served) jobs() []jobs.Job {
	if s == nil {
		return nil
	}
	return s.loaded
}

// uses reports whether a job of kind go has that handler.
func (s *served) uses(handler string) bool {
	return s != nil && slices.ContainsFunc(s.file.Jobs, func(j jobfile.Job) bool { return j.Go != nil && j.Go.Handler == handler })
}

// load makes the file's jobs.
func (s *served) load(ctx context.Context, example *settlement.Settlement) error {
	if s == nil {
		return nil
	}
	s.host = jobfile.Host{
		Guardian: []string{"pawl", "guardian"},
		Handlers: map[string]jobs.Func{exampleHandler: example.Job().Func},
	}
	all, wrong := s.build(ctx, s.file)
	if len(wrong) > 0 {
		return &coded{codeUsage, errors.Join(wrong...)}
	}
	s.loaded = all
	return nil
}

// build makes the jobs of a file that are not broken.
func (s *served) build(ctx context.Context, file *jobfile.File) (all []jobs.Job, wrong []error) {
	h := s.host
	h.Databases = map[string]*pgxpool.Pool{}
	for name, d := range file.Databases {
		pool, err := s.pool(ctx, d)
		if err != nil {
			wrong = append(wrong, usage("databases.%s.url: %w", name, err))
			continue
		}
		h.Databases[name] = pool
	}
	for i := range file.Jobs {
		j := &file.Jobs[i]
		if j.Broken || slices.ContainsFunc(j.Databases(), func(name string) bool { return h.Databases[name] == nil }) {
			continue
		}
		job, err := j.Load(h)
		if err != nil {
			wrong = append(wrong, &jobs.JobError{Job: j.Name, Err: err})
			continue
		}
		if job.Elsewhere {
			s.log.WarnContext(ctx, "job runs elsewhere: this process has no handler of that name", "job", j.Name, "handler", j.Go.Handler)
		}
		all = append(all, job)
	}
	return all, wrong
}

// databaseConns is the pool of one of the file's own databases.
const databaseConns = 4

// pool is the one of that database, which connects when it is needed: that it is away spoils its own jobs' runs only.
func (s *served) pool(ctx context.Context, d jobfile.Database) (*pgxpool.Pool, error) {
	url := d.URL.Expand(nil)
	if p := s.pools[url]; p != nil {
		return p, nil
	}
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, badURL(url, err)
	}
	cfg.MaxConns = databaseConns
	cc := cfg.ConnConfig
	cc.ConnectTimeout = cmp.Or(cc.ConnectTimeout, connectTimeout)
	cc.RuntimeParams["application_name"] = cmp.Or(cc.RuntimeParams["application_name"], "pawl")
	p, err := pgxpool.NewWithConfig(ctx, cfg)
	if err == nil {
		s.pools[url] = p
	}
	return p, err
}

func (s *served) close() {
	if s == nil {
		return
	}
	for _, p := range s.pools {
		p.Close()
	}
}
