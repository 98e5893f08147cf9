package jobs

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

// pair stores two jobs of days: "j" needs "import". Each has a lock of its own, L and I.
func (r *Runner) pair(t *testing.T, days int) (keys []string) {
	t.Helper()
	from := time.Now().UTC().AddDate(0, 0, -days)
	r.jobs["import"] = r.stored(t, Job{Name: "import", Schedule: "@daily", Lock: "I"}, from)
	r.jobs["j"] = r.stored(t, Job{Name: "j", Schedule: "@daily", Lock: "L", Needs: []Need{{"import"}}}, from)
	r.names, r.ttls = []string{"import", "j"}, []int64{60_000, 60_000}
	if err := r.loadNeeds(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := r.plan(t.Context()); err != nil {
		t.Fatal(err)
	}
	return texts(t, r.cfg.Pool, `select key from pawl.periods where job = 'j' order by key`)
}

// imports completes the oldest period of import. heard: the process lives long enough to let go what waited.
func (r *Runner) imports(t *testing.T, heard bool) {
	t.Helper()
	s, err := r.start(t.Context(), []startRequest{{"I", uuid.New(), 0}})
	if err != nil || s[0].run == nil {
		t.Fatalf("start = %+v, %v", s, err)
	}
	run := s[0].run
	if ok, err := r.end(t.Context(), []endRequest{{run: run, outcome: stateComplete}}); err != nil || !ok[0] {
		t.Fatal(ok, err)
	}
	if heard {
		r.ended(t.Context(), run, stateComplete, true, nil)
	}
}

func TestAPeriodWaitsForWhatItNeeds(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	keys := r.pair(t, 3)
	if n := exec(t, pool, `select count(*) from pawl.periods where job = 'j' and state = 'open' and waits = 'needs'`); n != 3 {
		t.Fatalf("%d periods wait, want 3", n)
	}
	if got := r.goes(t, stateComplete); got != "" {
		t.Fatalf("%q runs before what it needs", got)
	}
	r.imports(t, true)
	if n := exec(t, pool, ruleSQL); n != 1 {
		t.Errorf("%d live deliveries for the period that may run now", n)
	}
	if got := r.goes(t, stateComplete); got != keys[0] {
		t.Errorf("%q runs, want %q", got, keys[0])
	}
	if got := r.goes(t, stateComplete); got != "" {
		t.Errorf("%q runs before what it needs", got)
	}
}

// The process died after a completion. What waited for it must not come after what waited for the next.
func TestACompletionThatWasNotHeardOfKeepsTheOrder(t *testing.T) {
	t.Parallel()
	r, _ := opened(t)
	keys := r.pair(t, 3)
	r.imports(t, false)
	r.imports(t, true)
	for _, want := range keys[:2] {
		if got := r.goes(t, stateComplete); got != want {
			t.Errorf("%q runs, want %q", got, want)
		}
	}
}

func TestTheBackstopLetsGoWhatWasMissed(t *testing.T) {
	t.Parallel()
	r, _ := opened(t)
	keys := r.pair(t, 2)
	r.imports(t, false)
	if err := r.backstop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := r.goes(t, stateComplete); got != keys[0] {
		t.Errorf("%q runs, want %q", got, keys[0])
	}
}

// An unmet need holds no line: another job of the lock goes on.
func TestAnUnmetNeedHoldsNoLine(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	keys := r.pair(t, 2)
	exec(t, pool, `update pawl.periods set waits = null where key = $1 and job = 'j' returning 1`, keys[1])
	if got := r.goes(t, stateComplete); got != keys[1] {
		t.Errorf("%q runs, want %q", got, keys[1])
	}
}

func TestWhatIsOwedAfterItsNeedWasMetDoesNotWait(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	keys := r.pair(t, 1)
	r.imports(t, false)
	exec(t, pool, `delete from pawl.periods where job = 'j' returning 1`)
	if _, err := Backfill(t.Context(), pool, "j", keys[0], keys[0], BackfillConfig{Actor: "ann"}); err != nil {
		t.Fatal(err)
	}
	if got := state(t, pool, keys[0]); got != "complete open" && got != "open complete" {
		t.Errorf("states %q", got)
	}
}

func TestNeedsThatCanNeverBeMetAreRefused(t *testing.T) {
	t.Parallel()
	r, _ := opened(t)
	job := func(name, schedule string, needs ...string) Job {
		j := Job{Name: name, Schedule: schedule, Lock: name, MaxRetries: 5}
		for _, n := range needs {
			j.Needs = append(j.Needs, Need{n})
		}
		return j
	}
	for _, c := range []struct {
		want string
		jobs []Job
	}{
		{"a → b → c → a", []Job{job("a", "@daily", "b"), job("b", "@daily", "c"), job("c", "@daily", "a")}},
		{"made anew each time", []Job{job("a", "@daily", "b"), job("b", "@manual")}},
		{"this one's is day, that one's week", []Job{job("a", "@daily", "b"), job("b", "@weekly")}},
	} {
		r.jobs, r.names = map[string]Job{}, nil
		for _, j := range c.jobs {
			r.jobs[j.Name] = j
			r.names = append(r.names, j.Name)
		}
		slices.Sort(r.names)
		err := r.register(t.Context())
		var bad *ConfigError
		if !errors.As(err, &bad) || bad.Field != "Needs" || !strings.Contains(err.Error(), c.want) {
			t.Errorf("register = %v, want %s", err, c.want)
		}
	}
	// Half of a circle is stored by another process.
	r.jobs, r.names = map[string]Job{"a": job("a", "@daily", "b")}, []string{"a"}
	if err := r.register(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.jobs, r.names = map[string]Job{"b": job("b", "@daily", "a")}, []string{"b"}
	if err := r.register(t.Context()); err == nil || !strings.Contains(err.Error(), "b → a → b") {
		t.Errorf("register = %v, want it to name the circle", err)
	}
	for needs, want := range map[string]string{"x!": "name of another job", "x": "can't wait for itself", "y y": "name it once"} {
		j := job("x", "@daily", strings.Fields(needs)...)
		j.Func = func(_ context.Context, _ *Run) error { return nil }
		if _, err := j.withDefaults(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("needs %q: %v, want %s", needs, err, want)
		}
	}
}
