package crew

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"strings"
	"testing"
)

type verdict bool

func (v verdict) Right() bool    { return bool(v) }
func (v verdict) String() string { return "played" }

func TestTheExitCodeSaysWhatCameOfAPlay(t *testing.T) {
	t.Parallel()
	units := 0
	play := func(r Report, err error) func(context.Context, Flags) (Report, error) {
		return func(ctx context.Context, f Flags) (Report, error) {
			if err == nil {
				f.Tell(ctx, r, "postgres://x")
			}
			return r, err
		}
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	for _, c := range []struct {
		args      string
		ctx       context.Context //nolint:containedctx // a case of the table
		report    Report
		err       error
		code      int
		out, said string
	}{
		{args: "--exit", report: verdict(true), out: "played\n"},
		{args: "--exit --json", report: verdict(true), out: "true\n"},
		{args: "--exit", report: verdict(false), code: 1, out: "played\n"},
		{args: "--exit", err: errors.New("no server"), code: 1, said: "shop: no server\n"},
		{args: "--exit", ctx: stopped, err: errors.New("no server"), code: 1, said: "shop: stopped before its end\n"},
		{args: "", ctx: stopped, report: verdict(true), out: "played\n", said: "The database is there until ^C"},
		{args: "--exit more", report: verdict(true), code: 2, said: `shop: "more" is no flag: see -h`},
		{args: "--exit --units 0", report: verdict(true), code: 2, said: "shop: -units is 0: use 1 or more\n"},
		{args: "--color", report: verdict(true), code: 2, said: "flag provided but not defined"},
		{args: "-h", report: verdict(true), said: "-broken"},
	} {
		e := Example{
			Name: "shop",
			Define: func(flags *flag.FlagSet) {
				flags.IntVar(&units, "units", 1, "units")
				flags.Bool("broken", false, "without its fence")
			},
			Check: func() error {
				if units < 1 {
					return errors.New("-units is 0: use 1 or more")
				}
				return nil
			},
			Play: play(c.report, c.err),
		}
		ctx := t.Context()
		if c.ctx != nil {
			ctx = c.ctx
		}
		var out, said bytes.Buffer
		code := e.Command(ctx, strings.Fields(c.args), &out, &said)
		if code != c.code || out.String() != c.out || !strings.Contains(said.String(), c.said) {
			t.Errorf("shop %s: exit code %d, printed %q, said %q", c.args, code, out.String(), said.String())
		}
	}
}
