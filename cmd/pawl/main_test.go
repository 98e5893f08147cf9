package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rogpeppe/go-internal/testscript"

	"pawl/internal/pgtest"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"pawl": main})
}

// Scripts have URL, a migrated database of their own, and EMPTY, one with nothing in it.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(env *testscript.Env) error {
			tb, ok := env.T().(testing.TB)
			if !ok {
				return errors.New("testscript's T is no testing.TB any more")
			}
			env.Setenv("URL", pgtest.URL(tb))
			env.Setenv("EMPTY", pgtest.Empty(tb))
			env.Setenv("OLD", pgtest.TooOld(tb))
			env.Setenv("PLAIN", noTLS(tb))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "keys": keysOf, "sql": query, "oneline": oneLine,
		},
		RequireExplicitExec: true,
	})
}

// exits CODE COMMAND ARG… runs a command, as exec does, and compares its exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND ARG…")
	}
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, want %s; stderr: %s", code, args[0], ts.ReadFile("stderr"))
	}
}

// keysOf is keys KEY…: it compares the keys of the last output, one JSON object or an array of them; nothing else may be there.
func keysOf(ts *testscript.TestScript, _ bool, args []string) {
	dec := json.NewDecoder(strings.NewReader(ts.ReadFile("stdout")))
	var value any
	if err := dec.Decode(&value); err != nil {
		ts.Fatalf("standard output is not JSON: %v", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		ts.Fatalf("more than one JSON value on standard output")
	}
	if rows, ok := value.([]any); ok {
		if len(rows) == 0 {
			ts.Fatalf("the array is empty")
		}
		value = rows[0]
	}
	object, ok := value.(map[string]any)
	if !ok {
		ts.Fatalf("%v is no object", value)
	}
	var got []string
	for k := range object {
		got = append(got, k)
	}
	slices.Sort(got)
	want := slices.Sorted(slices.Values(args))
	if !slices.Equal(got, want) {
		ts.Fatalf("keys %v, want %v", got, want)
	}
}

// sql STATEMENT runs one in the migrated database.
func query(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: sql STATEMENT")
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, ts.Getenv("URL"))
	ts.Check(err)
	defer func() { _ = conn.Close(ctx) }()
	_, err = conn.Exec(ctx, args[0])
	ts.Check(err)
}

// oneline demands that standard error is one line and that nothing is on standard output.
func oneLine(ts *testscript.TestScript, _ bool, _ []string) {
	said := ts.ReadFile("stderr")
	if strings.Count(said, "\n") != 1 || !strings.HasPrefix(said, "pawl: ") || ts.ReadFile("stdout") != "" {
		ts.Fatalf("not one sentence: %q and %q", said, ts.ReadFile("stdout"))
	}
}
