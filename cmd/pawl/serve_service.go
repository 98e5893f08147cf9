package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"syscall"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"pawl/examples/settlement"
	"pawl/jobs"
	"pawl/migrations"
	"pawl/web"
)

// service is one process that runs jobs and serves the API and the page.
type service struct {
	log         *slog.Logger
	runner      *jobs.Runner
	page        *page
	api         *api
	certificate *certificate
	store       *jobs.ArtifactDir // nil: nothing is published
	file        *served
	untilIdle   bool
	pages       []func(context.Context) error // each serves one address until its context ends
}

func newService(ctx context.Context, db, direct *database, f serveFlags, file *served, log *slog.Logger) (s *service, err error) {
	s = &service{log: log, file: file, untilIdle: f.untilIdle}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if s.page, err = newPage(ctx, db.pool, registry, log); err != nil {
		return s, err
	}
	if err := s.page.adopt(ctx); err != nil { // a copy that was restored elsewhere is refused here
		return s, err
	}
	if err := s.publish(f.artifacts); err != nil {
		return s, err
	}
	example := settlement.New(settlement.Config{})
	if len(f.jobs) > 0 || file.uses(exampleHandler) {
		if err := prepareExample(ctx, db, example); err != nil {
			return s, err
		}
	}
	if err := file.load(ctx, example); err != nil {
		return s, err
	}
	cfg := jobs.Config{
		App: file.app(), WholeApp: file != nil, AllowRetire: f.allowRetire, Channels: file.channels(),
		Pool: db.pool, Holder: f.holder, Concurrency: f.concurrency, Grace: f.grace, PlanPatience: f.patience, Logger: log, Registerer: registry,
	}
	if s.store != nil {
		cfg.Artifacts = s.store
	}
	if direct != nil {
		cfg.Direct = direct.pool
	}
	if s.runner, err = newRunner(cfg, f, file, example); err != nil {
		return s, err
	}
	s.page.cfg.Ready, s.page.cfg.BasePath, s.page.cfg.Wrong = s.ready, f.basePath, file.wrong
	if f.listen != "" {
		if err := s.offer(ctx, db.pool, registry, f); err != nil {
			return s, err
		}
	}
	return s, s.listen(ctx, f)
}

// publish opens the store of artifacts, if one is named: for the jobs, and for those who read over HTTP.
func (s *service) publish(dir string) (err error) {
	if dir == "" {
		return nil
	}
	if s.store, err = jobs.OpenArtifactDir(dir); err != nil { // to make it would hide a misspelt name, or a volume that isn't there
		return usage("--artifacts is %q: %s; name the directory that the jobs publish to", dir, last(err))
	}
	artifacts, err := jobs.NewArtifacts(jobs.ArtifactsConfig{Pool: s.page.pool, Store: s.store, Logger: s.log})
	s.page.cfg.Artifacts = artifacts
	return err
}

// offer makes the API part of what is served, for those who may reach it.
func (s *service) offer(ctx context.Context, base *pgxpool.Pool, registry *prometheus.Registry, f serveFlags) (err error) {
	if s.api, err = newAPI(ctx, base, registry, s.log); err != nil {
		return err
	}
	closed, err := s.api.keys.Any(ctx)
	if err != nil {
		return err
	}
	if err := f.checkListen(closed); err != nil {
		return err
	}
	if s.certificate, err = loadCertificate(f.tlsCert, f.tlsKey); err != nil {
		return err
	}
	far := errors.Is(web.CheckListen(f.listen, false, false), web.ErrOpen)
	if closed && f.insecure {
		s.log.InfoContext(ctx, "--insecure-no-auth opens nothing: a key was made, so nobody is answered without one")
	}
	switch {
	case !closed && !far:
		s.log.InfoContext(ctx, "no key was ever made: whoever reaches this address may hold and release every lock; to close it: pawl key create")
	case closed && far && s.certificate == nil:
		s.log.WarnContext(ctx, "keys come in plain text to an address that other machines reach: give --tls-cert and --tls-key, or let only a proxy that speaks TLS reach it")
	}
	s.page.cfg.API, s.page.cfg.MaxHold = s.api.locks, f.maxHold
	s.page.admit(s.api.keys)
	if err := f.pages.apply(&s.page.cfg); err != nil {
		return err
	}
	s.page.cfg.Insecure = f.insecure && !closed
	return nil
}

// listen opens the addresses before any work begins: a port that is taken is found at once.
func (s *service) listen(ctx context.Context, f serveFlags) error {
	if f.listen != "" {
		serve := func(ctx context.Context, ln net.Listener) error { return s.page.serve(ctx, s.certificate.wrap(ln)) }
		if err := s.add(ctx, "--listen", f.listen, serve); err != nil {
			return err
		}
	}
	if f.healthListen == "" {
		return nil
	}
	return s.add(ctx, "--health-listen", f.healthListen, s.page.serveHealth)
}

func (s *service) add(ctx context.Context, flag, addr string, serve func(context.Context, net.Listener) error) error {
	ln, err := web.Listen(ctx, addr)
	if err != nil {
		return cantListen(flag, addr, err)
	}
	s.pages = append(s.pages, func(ctx context.Context) error { return serve(ctx, ln) })
	return nil
}

// cantListen says what to do about an address that can't be had.
func cantListen(flag, addr string, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		without := map[string]string{"--listen": `, or --listen "" for no page`}[flag]
		return usage("%s is %q: another process listens there; name another address with %s ADDRESS%s", flag, addr, flag, without)
	}
	return usage("%s is %q: %s; use an address of this machine, such as 127.0.0.1:8399", flag, addr, last(err))
}

// run serves and works until ctx ends and the runs are drained. The page stays up meanwhile: it says "draining".
func (s *service) run(ctx context.Context) error {
	working, stopWork := context.WithCancel(ctx)
	defer stopWork()
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	var all sync.WaitGroup
	failed := make(chan error, len(s.pages))
	for _, serve := range s.pages {
		all.Go(func() {
			if err := serve(serving); err != nil {
				failed <- err
				stopWork()
			}
		})
	}
	ignoreHangups := s.reloadOnHangup(working)
	defer ignoreHangups()
	if s.untilIdle {
		all.Go(func() { s.stopWhenIdle(working, stopWork) })
	}
	err := s.runner.Run(working)
	stopWork()
	stopServing()
	all.Wait()
	close(failed)
	for e := range failed {
		err = errors.Join(err, e)
	}
	return err
}

// ready is nil, or why this process takes no work.
func (s *service) ready(ctx context.Context) error {
	if err := s.runner.Ready(); err != nil {
		return err
	}
	err := migrations.Check(ctx, s.page.pool, migrations.Binary)
	switch {
	case err == nil:
		return nil
	case codeOf(err) == codeUsage && wrongInput(err):
		return &jobs.NotReadyError{Reason: sentence(err)}
	}
	s.log.WarnContext(ctx, "not ready", "error", err)
	return &jobs.NotReadyError{Reason: "the database doesn't answer"}
}

func (s *service) close() {
	if s.page != nil {
		s.page.close()
	}
	if s.api != nil {
		s.api.close()
	}
	s.file.close()
	if s.store != nil {
		_ = s.store.Close()
	}
}
