package kinds_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"pawl/internal/pgtest"
	"pawl/jobs"
	"pawl/jobs/kinds"
)

func TestACommandKnowsItsRun(t *testing.T) {
	t.Setenv("KINDS_SECRET", "inherited")
	pool := pgtest.New(t)
	j := job(t, kinds.Command{
		Guardian: self(), Argv: []kinds.Text{kinds.Plain("/bin/sh"), kinds.Plain("-c"), kinds.Plain(`env | sort; echo "arg=$1"; pwd`), kinds.Plain("sh"), template("{{period.key}} {{params.mode}} {{run.attempt}}")},
		Env: map[string]kinds.Text{"LANG": kinds.Plain("C"), "START": template("{{period.start}}")}, Dir: "/",
	})
	j.Params = text("mode", "$(full)")
	j = in(t, "Europe/Berlin", j)
	start(t, jobs.Config{Pool: pool, Holder: "me"}, j)
	r := run(t, pool)
	if r.State != "complete" || r.period != "complete" {
		t.Fatalf("%+v", r)
	}
	text := "\n" + r.text()
	for _, want := range []string{
		"LANG=C", "PAWL_LOCK=job:x", "PAWL_HOLDER=me", "PAWL_TTL=30s", "PAWL_JOB=x", "PAWL_PERIOD=" + r.Key, "PAWL_REVISION=1",
		"PAWL_ATTEMPT=1", "PAWL_RUN=" + r.ID.String(), "arg=" + r.Key + " $(full) 1", "START=" + r.Key + "T00:00:00+0",
	} {
		if !strings.Contains(text, "\n"+want) {
			t.Errorf("%q is missing in %s", want, text)
		}
	}
	if strings.Contains(text, "KINDS_SECRET") || !strings.Contains(text, "\nPATH=") || !strings.HasSuffix(text, "\n/\n") {
		t.Error(text)
	}
	var scheduled time.Time
	if err := pool.QueryRow(t.Context(), `select scheduled_at from pawl.periods`).Scan(&scheduled); err != nil {
		t.Fatal(err)
	}
	if want := "\nPAWL_SCHEDULED_AT=" + scheduled.UTC().Format(time.RFC3339); !strings.Contains(text, want) {
		t.Errorf("%s is missing in %s", want, text)
	}
}

func TestExitCodesSayWhatBecomesOfThePeriod(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ script, state, period, text string }{
		"complete":   {"exit 0", "complete", "complete", ""},
		"mapped":     {"exit 4", "complete", "complete", ""},
		"retry":      {"echo busy; exit 75", "failed", "open failed", "command asks for another run: exit code 75: busy"},
		"skip":       {"echo no file; exit 99", "skipped", "skipped exit_code", "jobs: period is skipped: exit code 99: no file"},
		"error":      {"echo a; echo; echo oh no; exit 3", "failed", "open failed", "command failed: exit code 3: oh no"},
		"by signal":  {"kill -9 $$", "failed", "open failed", "command failed: exit code 137 (signal killed)"},
		"no program": {"", "failed", "open failed", "command can't be run: file does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.New(t)
			cmd := shell(c.script)
			if c.script == "" {
				cmd = kinds.Command{Guardian: self(), Argv: []kinds.Text{kinds.Plain("pawl-no-such-program")}}
			}
			cmd.Exit = map[int]string{4: kinds.ExitComplete, 75: kinds.ExitRetry, 99: kinds.ExitSkip}
			j := job(t, cmd)
			j.RetryDelay, j.RetryMaxDelay = time.Hour, 2*time.Hour
			start(t, jobs.Config{Pool: pool}, j)
			if r := run(t, pool); r.State != c.state || r.period != c.period || r.Error != c.text {
				t.Errorf("%s %q, period %s", r.State, r.Error, r.period)
			}
		})
	}
}

func TestAGigabyteOfOutputIsKeptInBoundedMemory(t *testing.T) {
	pool := pgtest.New(t)
	start(t, jobs.Config{Pool: pool}, job(t, shell(`echo first; head -c 1073741824 /dev/zero; echo; echo last`)))
	var most uint64
	pgtest.Eventually(t, time.Minute, "the run has ended", func() bool {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		most = max(most, m.HeapInuse)
		return count(t, pool, `select count(*) from pawl.runs where ended_at is not null`) == 1
	})
	r := run(t, pool)
	head, tail := string(r.output.Head), string(r.output.Tail)
	if r.State != "complete" || r.output.Bytes != 1073741824+6+1+5 || len(head) != 512<<10 || len(tail) != 512<<10 || !r.output.Cut() ||
		!strings.HasPrefix(head, "first\n\x00") || !strings.HasSuffix(tail, "\x00\nlast\n") {
		t.Errorf("%s: %d bytes, head %d, tail %d", r.State, r.output.Bytes, len(head), len(tail))
	}
	t.Logf("heap at most %d KiB", most>>10)
	if most > 32<<20 {
		t.Errorf("the heap grew to %d MiB", most>>20)
	}
	// No list carries it.
	if n := count(t, pool, `select count(*) from information_schema.columns where table_schema = 'pawl' and table_name = 'runs' and column_name in ('head', 'tail', 'output')`); n != 0 {
		t.Error("runs carry their output")
	}
}

func TestProgressIsReadFromLines(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	hold := filepath.Join(t.TempDir(), "go")
	cmd := shell(`printf 'progress=1/4\rprogress=3/4\r'; while [ ! -e ` + hold + ` ]; do sleep 0.01; done; echo progress=4/4`)
	cmd.Output.Progress = `progress=(\d+)/(\d+)`
	start(t, jobs.Config{Pool: pool}, job(t, cmd))
	until(t, pool, 1, `select count(*) from pawl.runs where done = 3 and total = 4`)
	if err := os.WriteFile(hold, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := run(t, pool); r.Done == nil || *r.Done != 4 || r.State != "complete" {
		t.Errorf("%+v", r)
	}
}

func TestATimeoutEndsTheWholeGroupAndThePipeDoesNotHang(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	j := job(t, shell(`sleep 601 & sleep 602`))
	j.Timeout = 500 * time.Millisecond
	j.MaxRetries = jobs.NoRetries
	start(t, jobs.Config{Pool: pool}, j)
	since := time.Now()
	if r := run(t, pool); r.State != "timed_out" || r.period != "dead timed_out" {
		t.Errorf("%s %s %s", r.State, r.Error, r.period)
	}
	if took := time.Since(since); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestTermComesFirstAndKillAfterTheGrace(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	cmd := shell(`trap 'echo term' TERM; while :; do sleep 0.01; done`)
	cmd.Grace = 700 * time.Millisecond
	j := job(t, cmd)
	j.Timeout = 500 * time.Millisecond
	j.RetryDelay = time.Hour
	start(t, jobs.Config{Pool: pool}, j)
	r := run(t, pool)
	if r.State != "timed_out" || !strings.Contains(r.text(), "term\n") || !strings.Contains(r.Error, "exit code 137 (signal killed)") {
		t.Errorf("%s %q %q", r.State, r.text(), r.Error)
	}
	if took := r.EndedAt.Sub(r.StartedAt); took < 1100*time.Millisecond || took > 4*time.Second {
		t.Errorf("it took %v, want the timeout and the grace", took)
	}
}

func TestACommandThatEndsInItsGraceCounts(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	j := job(t, shell(`trap 'echo done; exit 0' TERM; while :; do sleep 0.01; done`))
	j.Timeout = 500 * time.Millisecond
	start(t, jobs.Config{Pool: pool}, j)
	if r := run(t, pool); r.State != "complete" || r.Error != "" || !strings.Contains(r.text(), "done\n") {
		t.Errorf("%s %q %q", r.State, r.text(), r.Error)
	}
}

func TestACommandMayRunForManyLeases(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	j := job(t, shell(`sleep 4; echo still here`))
	j.TTL = time.Second
	start(t, jobs.Config{Pool: pool}, j)
	if r := run(t, pool); r.State != "complete" || r.Attempt != 1 || r.text() != "still here\n" {
		t.Errorf("%s %q %q", r.State, r.text(), r.Error)
	}
}

func TestTheRunnersGraceBoundsTheCommands(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	cmd := shell(`trap '' TERM; while :; do sleep 0.01; done`)
	cmd.Grace = time.Hour
	j := job(t, cmd)
	j.Timeout, j.Grace, j.RetryDelay = 500*time.Millisecond, 2*time.Second, time.Hour
	start(t, jobs.Config{Pool: pool}, j)
	if r := run(t, pool); r.State != "timed_out" || !strings.Contains(r.Error, "exit code 137") || strings.Contains(r.Error, "ignores") {
		t.Errorf("%s %q", r.State, r.Error)
	}
}

func TestAShutdownAsksTheCommandAtOnceAndCostsNoAttempt(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	ready := filepath.Join(t.TempDir(), "ready")
	stop := start(t, jobs.Config{Pool: pool, Grace: 20 * time.Second}, job(t, shell(`trap 'echo asked; exit 1' TERM; : > `+ready+`; while :; do sleep 0.01; done`)))
	pgtest.Eventually(t, 20*time.Second, "it runs", func() bool { _, err := os.Stat(ready); return err == nil })
	since := time.Now()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(since); took > 5*time.Second {
		t.Errorf("the shutdown took %v", took)
	}
	r := run(t, pool)
	if r.State != "drained" || r.period != "open drained" || !strings.Contains(r.text(), "asked\n") {
		t.Errorf("%s, period %s, %q", r.State, r.period, r.text())
	}
	if n := count(t, pool, `select attempts from pawl.periods`); n != 0 {
		t.Errorf("it cost %d attempts", n)
	}
}

func TestACommandMayFinishInTheShutdownsGraceIfItIsSaid(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	dir := t.TempDir()
	cmd := shell(`trap 'echo asked; exit 1' TERM; : > ` + dir + `/ready; until [ -e ` + dir + `/go ]; do sleep 0.01; done; echo finished`)
	cmd.OnDrain = kinds.DrainFinish
	r, err := jobs.New(jobs.Config{Pool: pool, Grace: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Add(job(t, cmd)); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	pgtest.Eventually(t, 20*time.Second, "it runs", func() bool { _, err := os.Stat(dir + "/ready"); return err == nil })
	stop()
	pgtest.Eventually(t, 20*time.Second, "it shuts down", func() bool {
		err := r.Ready()
		return err != nil && strings.Contains(err.Error(), "draining")
	})
	if err := os.WriteFile(dir+"/go", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if r := run(t, pool); r.State != "complete" || r.text() != "finished\n" {
		t.Errorf("%s %q %q", r.State, r.text(), r.Error)
	}
}

func TestACommandThatMayFinishIsToldWhenTheGraceIsOver(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	ready := filepath.Join(t.TempDir(), "ready")
	cmd := shell(`trap 'echo asked; exit 1' TERM; : > ` + ready + `; while :; do sleep 0.01; done`)
	cmd.OnDrain = kinds.DrainFinish
	stop := start(t, jobs.Config{Pool: pool, Grace: 500 * time.Millisecond}, job(t, cmd))
	pgtest.Eventually(t, 20*time.Second, "it runs", func() bool { _, err := os.Stat(ready); return err == nil })
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if r := run(t, pool); r.State != "drained" || r.period != "open drained" || !strings.Contains(r.text(), "asked\n") {
		t.Errorf("%s, period %s, %q", r.State, r.period, r.text())
	}
}

func TestAShutdownKillsACommandThatWillNotEnd(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	ready := filepath.Join(t.TempDir(), "ready")
	cmd := shell(`trap '' TERM; : > ` + ready + `; while :; do sleep 0.01; done`)
	cmd.Grace = 500 * time.Millisecond
	stop := start(t, jobs.Config{Pool: pool, Grace: 20 * time.Second}, job(t, cmd))
	pgtest.Eventually(t, 20*time.Second, "it runs", func() bool { _, err := os.Stat(ready); return err == nil })
	since := time.Now()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(since); took < 400*time.Millisecond || took > 5*time.Second {
		t.Errorf("the shutdown took %v", took)
	}
	if r := run(t, pool); r.State != "drained" || !strings.Contains(r.Error, "exit code 137") {
		t.Errorf("%s %q", r.State, r.Error)
	}
}

func TestAForcedReleaseKillsTheCommandAtOnce(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	cmd := shell(`trap 'echo term' TERM; while :; do sleep 0.01; done`)
	j := job(t, cmd)
	j.TTL, j.RetryDelay = 2*time.Second, time.Hour
	start(t, jobs.Config{Pool: pool}, j)
	until(t, pool, 1, `select count(*) from pawl.runs where ended_at is null`)
	force(t, pool)
	if r := runs(t, pool, 1)[0]; r.State != "lost" {
		t.Errorf("%s %q", r.State, r.Error)
	}
}

func TestRunsWithoutOutputHaveNone(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	start(t, jobs.Config{Pool: pool}, job(t, shell(`exit 0`)))
	r := run(t, pool)
	if _, err := jobs.NewHistory(pool).Output(context.Background(), r.ID); !errors.Is(err, jobs.ErrNoOutput) {
		t.Errorf("%v", err)
	}
}

func TestWrongCommandsAreRefused(t *testing.T) {
	t.Parallel()
	for words, change := range map[string]func(*kinds.Command){
		"Guardian":             func(c *kinds.Command) { c.Guardian = nil },
		"give the program":     func(c *kinds.Command) { c.Argv = nil },
		"with Shell give one":  func(c *kinds.Command) { c.Argv = append(c.Argv, kinds.Plain("x")) },
		"Grace -1s":            func(c *kinds.Command) { c.Grace = -time.Second },
		`Env "PAWL_X"`:         func(c *kinds.Command) { c.Env = map[string]kinds.Text{"PAWL_X": kinds.Plain("")} },
		`Env "A=B"`:            func(c *kinds.Command) { c.Env = map[string]kinds.Text{"A=B": kinds.Plain("")} },
		`Exit "256: retry"`:    func(c *kinds.Command) { c.Exit = map[int]string{256: kinds.ExitRetry} },
		`Exit "1: again"`:      func(c *kinds.Command) { c.Exit = map[int]string{1: "again"} },
		"Output.Max":           func(c *kinds.Command) { c.Output.Max = 1 << 40 },
		`Output.Keep "middle"`: func(c *kinds.Command) { c.Output.Keep = "middle" },
		"two groups":           func(c *kinds.Command) { c.Output.Progress = `(\d+)` },
	} {
		c := shell("true")
		change(&c)
		mustFail(t, c, words)
	}
}
