package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"pawl/examples/settlement"
	"pawl/fence"
	"pawl/web"
)

// verdict is what came of the demo.
type verdict struct {
	Periods    int     `json:"periods"`
	Complete   int     `json:"complete"`
	Runs       int     `json:"runs"`
	Takeovers  int     `json:"takeovers"`
	Refusals   int     `json:"refusals"`
	Resumed    bool    `json:"resumed_from_checkpoint"`
	Payments   int64   `json:"payments"`
	Settled    int64   `json:"settled_minor"`
	Fees       int64   `json:"fees_minor"`
	Difference int64   `json:"difference_minor"`
	Duplicates int64   `json:"duplicates"`
	Seconds    float64 `json:"seconds"`

	totals settlement.Totals
}

// judge compares the totals by a statement that shares nothing with the settlement.
func (s *stage) judge(ctx context.Context, begun time.Time) (v verdict, err error) {
	if s.last, err = s.look(ctx); err != nil {
		return v, err
	}
	t, err := s.example.Totals(ctx, s.db.pool)
	if err != nil {
		return v, err
	}
	v = verdict{
		Periods: len(s.last.periods), Complete: s.last.complete(), Runs: len(s.last.runs), Takeovers: s.last.takeover,
		Refusals: len(s.last.refusals), Payments: t.Payments, Settled: t.Settled, Fees: t.Fees,
		Difference: t.Difference, Duplicates: t.Duplicates, totals: t,
	}
	for _, r := range s.last.runs {
		v.Resumed = v.Resumed || r.Resumed && r.State == "complete"
	}
	v.Seconds = math.Round(time.Since(begun).Seconds()*10) / 10
	return v, nil
}

// broken lists what didn't hold.
func (v verdict) broken() (what []string) {
	must := func(ok bool, format string, args ...any) {
		if !ok {
			what = append(what, fmt.Sprintf(format, args...))
		}
	}
	must(v.Periods == owedDays, "%d days are owed instead of %d", v.Periods, owedDays)
	must(v.Complete == v.Periods, "%d of %d days are complete", v.Complete, v.Periods)
	must(v.Takeovers >= 2, "%s instead of two", plural(v.Takeovers, "takeover", "takeovers"))
	must(v.Refusals >= 1, "no late write was refused")
	must(v.Resumed, "no run went on from a checkpoint")
	must(v.Payments > 0, "there are no payments")
	must(v.Difference == 0, "the totals differ by %d", v.Difference)
	must(v.Duplicates == 0, "%s settled twice", plural(v.Duplicates, "payment is", "payments are"))
	must(v.totals.Missing == 0, "%s missing", plural(v.totals.Missing, "payment is", "payments are"))
	return what
}

// conclude tells the end and returns an error if anything didn't hold.
func (s *stage) conclude(v verdict) error {
	s.p.tell("(d) an independent statement: %s, settled %s + fees %s minor units; difference %s, settled twice %s, missing %s",
		plural(v.Payments, "payment", "payments"), thousands(v.Settled), thousands(v.Fees), thousands(v.Difference),
		thousands(v.Duplicates), thousands(v.totals.Missing))
	var rows [][]string
	for _, r := range s.last.runs {
		from := "the beginning"
		if r.Resumed {
			from = "the checkpoint"
		}
		rows = append(rows, []string{
			r.Key, fmt.Sprint(r.Attempt), r.State, r.Holder, fence.FormatSeq(r.Token), from, r.progress(), since(&r.StartedAt, r.EndedAt),
		})
	}
	s.p.line("")
	s.p.table([]string{"DAY", "RUN", "END", "HOLDER", "TOKEN", "FROM", "DONE", "TOOK"}, rows)
	s.p.line("")
	if broken := v.broken(); len(broken) > 0 {
		return fmt.Errorf("not everything held: %s", strings.Join(broken, "; "))
	}
	s.p.line("%s: %d days complete once each in %s, %d takeovers, %s, %.1fs.", s.p.coloured(green, "Everything held"), v.Complete,
		plural(v.Runs, "run", "runs"), v.Takeovers, plural(v.Refusals, "refused write", "refused writes"), v.Seconds)
	return nil
}

// openPage is the page of the demo while it is served.
type openPage struct {
	url    string
	closed func()
}

func (o *openPage) close() { o.closed() }

// showPage serves the page from here on. If the usual port is taken it takes another.
func (s *stage) showPage(ctx context.Context, f demoFlags) error {
	ln, err := web.Listen(ctx, f.listen)
	if errors.Is(err, syscall.EADDRINUSE) && !f.ownListen {
		ln, err = web.Listen(ctx, "127.0.0.1:0")
	}
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return usage("--listen is %q: another process listens there; name another address with --listen ADDRESS", f.listen)
	case err != nil:
		return cantListen("--listen", f.listen, err)
	}
	g, err := newPage(ctx, s.db.pool, prometheus.NewRegistry(), nil)
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	s.page = serveUntilClosed(context.WithoutCancel(ctx), g, ln)
	s.p.tell("watch it at %s", s.page.url)
	return nil
}

func serveUntilClosed(ctx context.Context, g *page, ln net.Listener) *openPage {
	ctx, stop := context.WithCancel(ctx)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = g.serve(ctx, ln) // The listener is open, so it ends only with ctx.
	}()
	return &openPage{url: "http://" + ln.Addr().String() + "/", closed: func() {
		stop()
		<-served
		g.close()
	}}
}

// waitForEnd leaves the page and the workers as they are until the user has seen enough.
func (s *stage) waitForEnd(ctx context.Context) {
	s.p.line("")
	s.p.line("The page is at %s, with the workers behind it, until you press ^C.", s.page.url)
	if s.server != nil {
		s.p.line("The other commands work too:  pawl lock ls --database-url '%s'", s.url)
	}
	<-ctx.Done()
	s.p.line("ending the workers, the page%s", map[bool]string{true: " and Postgres"}[s.server != nil])
}
