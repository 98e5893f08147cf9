package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"pawl/fence"
	"pawl/lockrepo"
	"pawl/lockrepo/lockclient"
)

// lender is where locks are kept.
type lender interface {
	// acquire asks once, or for as long as wait says.
	acquire(ctx context.Context, lock string, ttl, wait time.Duration) (loan, error)
	done(ctx context.Context, lock, key string) (bool, error)
	close()
}

// loan is a lease and what renews it.
type loan interface {
	token() fence.Token
	holder() string
	// keep renews it from now on. The context ends when it is lost.
	keep(ctx context.Context) context.Context
	// left is how long it may still be believed in.
	left() time.Duration
	// release gives it back; finish also notes that a key is done. Neither may be followed by a renewal.
	release(ctx context.Context) error
	finish(ctx context.Context, key string) error
	stop()
}

func (c *cli) lender(ctx context.Context, f *runFlags) (lender, error) {
	if f.server != "" {
		client, err := lockclient.New(lockclient.Config{Server: f.server, KeyFile: f.keyFile, TTL: f.ttl, MaxElapsed: connectTimeout})
		if err != nil {
			return nil, usage("%s", strings.NewReplacer("lockclient: ", "", "Config.Server", "--server", "Config.Key", "--key-file").Replace(err.Error()))
		}
		return overHTTP{client}, nil
	}
	db, err := c.openMigrated(ctx, 2)
	if err != nil {
		return nil, err
	}
	repo, err := lockrepo.New(lockrepo.Config{Pool: db.pool, TTL: f.ttl}) //nolint:contextcheck // heartbeats end with close
	if err != nil {
		db.pool.Close()
		return nil, err
	}
	return &inDatabase{db, repo}, nil
}

type inDatabase struct {
	db   *database
	repo *lockrepo.Repo
}

func (d *inDatabase) acquire(ctx context.Context, lock string, ttl, wait time.Duration) (loan, error) {
	l, err := d.repo.AcquireWait(ctx, lockrepo.Request{Lock: lock, TTL: ttl}, wait)
	if err != nil {
		return nil, err
	}
	return &databaseLoan{repo: d.repo, lease: l}, nil
}

func (d *inDatabase) done(ctx context.Context, lock, key string) (bool, error) {
	return d.repo.OnceDone(ctx, lock, key)
}

// close doesn't wait long for a database that is away.
func (d *inDatabase) close() {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		d.repo.Close()
		d.db.pool.Close()
	}()
	t := time.NewTimer(time.Second)
	defer t.Stop()
	select {
	case <-closed:
	case <-t.C:
	}
}

type databaseLoan struct {
	repo  *lockrepo.Repo
	lease lockrepo.Lease
	kept  *lockrepo.Kept
}

func (l *databaseLoan) token() fence.Token  { return l.lease.Token }
func (l *databaseLoan) holder() string      { return l.lease.Holder }
func (l *databaseLoan) left() time.Duration { return l.kept.Lease().Left() }
func (l *databaseLoan) stop()               { l.kept.Stop() }

func (l *databaseLoan) keep(ctx context.Context) (held context.Context) {
	held, l.kept = l.repo.Keep(ctx, l.lease)
	return held
}

func (l *databaseLoan) release(ctx context.Context) error {
	l.kept.Completing()
	return l.repo.Release(ctx, l.kept.Lease())
}

func (l *databaseLoan) finish(ctx context.Context, key string) error {
	l.kept.Completing()
	return l.repo.FinishOnce(ctx, l.kept.Lease(), key)
}

// overHTTP asks a pawl serve.
type overHTTP struct{ client *lockclient.Client }

func (o overHTTP) acquire(ctx context.Context, lock string, ttl, wait time.Duration) (loan, error) {
	ask := func() (lockclient.Lease, error) { return o.client.Acquire(ctx, lock, ttl) }
	if wait > 0 {
		ask = func() (lockclient.Lease, error) { return o.client.AcquireWait(ctx, lock, ttl, wait) }
	}
	l, err := ask()
	if err != nil {
		return nil, err
	}
	return &serverLoan{client: o.client, lease: l}, nil
}

var errDatabaseOnly = errors.New("--once-per needs the database")

func (overHTTP) done(context.Context, string, string) (bool, error) { return false, errDatabaseOnly }
func (overHTTP) close()                                             {}

type serverLoan struct {
	client *lockclient.Client
	lease  lockclient.Lease
	kept   *lockclient.Kept
}

func (l *serverLoan) token() fence.Token  { return l.lease.Token }
func (l *serverLoan) holder() string      { return l.lease.Holder }
func (l *serverLoan) left() time.Duration { return l.kept.Lease().Left() }
func (l *serverLoan) stop()               { l.kept.Stop() }

func (l *serverLoan) keep(ctx context.Context) (held context.Context) {
	held, l.kept = l.client.Keep(ctx, l.lease)
	return held
}

func (l *serverLoan) release(ctx context.Context) error {
	l.kept.Completing()
	return l.client.Release(ctx, l.kept.Lease())
}

func (*serverLoan) finish(context.Context, string) error { return errDatabaseOnly }
