package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"pawl/web"
)

// demoFlags are what the demo can be told.
type demoFlags struct {
	payments        int
	exit, clean     bool
	dataDir, listen string
	ownListen       bool // the address was named: it isn't replaced when it is taken
}

func (c *cli) demo() *cobra.Command {
	var f demoFlags
	cmd := &cobra.Command{
		Use: "demo", Short: "Watch a settlement survive a crash and a paused worker", Args: exactly(),
		Long: `Watch a settlement survive a crash and a paused worker.

It starts a Postgres of its own, makes payments of five days, and has three worker processes settle
them. One of them is killed in the middle of a batch; one is stopped until its lease is over and then
woken, and its late write is refused. In the end an independent statement compares all totals.

With --database-url it uses your database: pawl's tables in the schema pawl, the example's in
pawl_demo. It touches neither unless it has made it, and makes both anew each time.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.ownListen = cmd.Flags().Changed("listen") || c.getenv("PAWL_LISTEN") != ""
			if err := web.CheckListen(f.listen, false, false); err != nil && !f.exit {
				return usage("--listen is %q: the demo's page listens on loopback only, as on 127.0.0.1:8399", f.listen)
			}
			return c.runDemo(cmd.Context(), f)
		},
	}
	fs := cmd.Flags()
	f.payments = 200_000
	fs.Var(&between{&f.payments, 1, 100_000_000}, "payments", "how many payments to settle")
	fs.BoolVar(&f.exit, "exit", false, "end after the story, with 0 only if everything held")
	fs.BoolVar(&f.clean, "clean", false, "remove what an earlier demo has made, and end: its schemas in your database, or its own Postgres with all data")
	fs.StringVar(&f.dataDir, "data-dir", "", "where the demo's own Postgres keeps its data (default below the user's state directory)")
	fs.StringVar(&f.listen, "listen", "127.0.0.1:8399", "where the page listens, on loopback")
	variable(fs, "listen", "PAWL_LISTEN")
	return cmd
}

// errInterrupted ends a demo that was told to.
var errInterrupted = errors.New("the demo was stopped before its end; nothing of it is left running")

func (c *cli) runDemo(ctx context.Context, f demoFlags) (err error) {
	begun, told := time.Now(), false
	defer func() {
		c.p.draw("")
		if err != nil && !told && ctx.Err() != nil {
			err = &coded{codeFailed, errInterrupted}
		}
	}()
	if f.clean && c.databaseURL == "" {
		return c.cleanDir(f.dataDir)
	}
	s, err := c.setStage(ctx, f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }() //nolint:contextcheck // it ends what is there though ctx is over
	if f.clean {
		return s.clean(ctx)
	}
	if err := s.prepare(ctx, f.payments); err != nil {
		return err
	}
	if !f.exit {
		if err := s.showPage(ctx, f); err != nil {
			return err
		}
	}
	if err := s.hire(); err != nil {
		return err
	}
	if err := s.tellStory(ctx); err != nil {
		return err
	}
	v, err := s.judge(ctx, begun)
	if err != nil {
		return err
	}
	if c.p.json {
		if err := c.p.value(v); err != nil {
			return err
		}
	}
	told = true
	held := s.conclude(v)
	if !f.exit {
		s.waitForEnd(ctx)
	}
	return held
}
