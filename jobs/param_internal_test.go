package jobs

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
)

// declared are params of all types.
func declared() map[string]Param {
	return map[string]Param{
		"mode":  {Type: ParamString, Default: "full", Enum: []any{"full", "dry"}},
		"limit": {Type: ParamInt, Default: int64(10)},
		"rate":  {Type: ParamNumber, Default: 1.5, Enum: []any{1.5, 2, int64(3)}},
		"force": {Type: ParamBool, Default: false},
	}
}

// paramsOf starts the lock's next period, and returns the params that its function would see.
func (r *Runner) paramsOf(t *testing.T) (Params, *Run) {
	t.Helper()
	s, err := r.start(t.Context(), []startRequest{{"job:j", uuid.New(), 1}})
	if err != nil || s[0].run == nil {
		t.Fatalf("start = %+v, %v", s, err)
	}
	if err := s[0].run.loadParams(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s[0].run.Params, s[0].run
}

func given(t *testing.T, pool *pgxpool.Pool, key string) string {
	t.Helper()
	return strings.Join(texts(t, pool, `select coalesce(params::text, '-') from pawl.periods where key = $1 order by revision`, key), " ")
}

func TestWhatATriggerGivesIsWhatTheRunHas(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	r.jobs["j"] = r.stored(t, Job{Name: "j", Schedule: "0 0 * * *", Params: declared()}, time.Now())
	if _, err := Trigger(t.Context(), pool, "j", TriggerConfig{Actor: "ann", Params: map[string]string{"mode": "dry", "limit": "9007199254740993"}}); err != nil {
		t.Fatal(err)
	}
	key, err := Trigger(t.Context(), pool, "j", TriggerConfig{Actor: "ann", Params: map[string]string{"rate": "2.0", "force": "true"}})
	if err != nil {
		t.Fatal(err)
	}
	got, run := r.paramsOf(t)
	if got["mode"] != "dry" || got["limit"] != int64(9007199254740993) || got["rate"] != 2.0 || got["force"] != true || len(got) != 4 {
		t.Fatalf("params %v", got)
	}
	if got.Text("rate") != "2" || got.Text("limit") != "9007199254740993" || got.Text("none") != "" {
		t.Errorf("texts %q %q", got.Text("rate"), got.Text("limit"))
	}
	if ok, err := r.end(t.Context(), []endRequest{{run: run, outcome: stateComplete}}); err != nil || !ok[0] {
		t.Fatalf("end = %v, %v", ok, err)
	}
	// A rerun has them too, but for what it is given anew.
	if _, err := Rerun(t.Context(), pool, "j", key, RerunConfig{Reason: "late", Params: map[string]string{"mode": "full"}}); err != nil {
		t.Fatal(err)
	}
	if got, _ := r.paramsOf(t); got["mode"] != "full" || got["force"] != true {
		t.Errorf("the rerun has %v", got)
	}
	if s := given(t, pool, key); strings.Count(s, `"mode": "dry"`) != 1 || strings.Count(s, `"mode": "full"`) != 1 {
		t.Errorf("stored %s", s)
	}
	h := NewHistory(pool)
	periods, err := h.Periods(t.Context(), PeriodFilter{Job: "j"})
	if err != nil || periods[0].ParamWords() != "force=true, limit=9007199254740993, mode=full, rate=2" || !json.Valid(periods[0].Params) {
		t.Errorf("history says %q, %v", periods[0].ParamWords(), err)
	}
	w, err := h.Why(t.Context(), "j", key)
	if err != nil || !strings.Contains(strings.Join(w.Sentences, " "), "It was given force=true, limit=9007199254740993, mode=dry, rate=2.") {
		t.Errorf("why says %q, %v", w.Sentences, err)
	}
}

func TestABackfillGivesParamsToAllThatItOwes(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	keys := r.chain(t, 3, Job{Params: declared(), MaxRetries: NoRetries})
	r.goes(t, stateFailed)   // has a row that is opened again
	r.goes(t, stateComplete) // is left as it is
	first := keys[0]
	before, err := time.Parse(time.DateOnly, first)
	if err != nil {
		t.Fatal(err)
	}
	fresh := before.AddDate(0, 0, -1).Format(time.DateOnly)
	if _, err := Backfill(t.Context(), pool, "j", fresh, keys[1], BackfillConfig{Params: map[string]string{"mode": "dry"}}); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{fresh: `{"mode": "dry"}`, first: `{"mode": "dry"}`, keys[1]: "-", keys[2]: "-"} {
		if got := given(t, pool, key); got != want {
			t.Errorf("%s was given %s, want %s", key, got, want)
		}
	}
}

func TestAParamIsCheckedAgainstItsDeclaration(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	r.stored(t, Job{Name: "j", Schedule: "0 0 * * *", Params: declared()}, time.Now())
	r.stored(t, Job{Name: "m", Schedule: "@manual", Params: map[string]Param{"day": {Type: ParamString}}}, time.Now())
	r.stored(t, Job{Name: "none", Schedule: "0 0 * * *"}, time.Now())
	for _, c := range []struct{ job, name, value, want string }{
		{"j", "mod", "dry", `jobs: j: param "mod" is not declared: the job has force, limit, mode, rate. Did you mean "mode"?`},
		{"j", "mode", "ful", `jobs: j: param "mode" is "ful": give "full" or "dry"`},
		{"j", "limit", "1.5", `jobs: j: param "limit" is "1.5": give a whole number, such as 42`},
		{"j", "limit", "9223372036854775808", "give a whole number"},
		{"j", "rate", "NaN", "give a number"},
		{"j", "rate", "0x1p4", "give a number"},
		{"j", "rate", "4", `give "1.5", "2" or "3"`},
		{"j", "force", "yes", "give true or false"},
		{"m", "day", "a\x00", "UTF-8 without NUL"},
		{"m", "", "", `jobs: m: param "day" is missing: it has no default, so give it a value`},
		{"none", "mode", "dry", `param "mode" is not declared: the job has no params`},
	} {
		params := map[string]string{c.name: c.value}
		if c.name == "" {
			params = nil
		}
		_, err := Trigger(t.Context(), pool, c.job, TriggerConfig{Params: params})
		var bad *ParamError
		if !errors.Is(err, ErrParam) || !errors.As(err, &bad) || bad.Job != c.job || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s=%s of %s: %v, want %q", c.name, c.value, c.job, err, c.want)
		}
	}
	if n := exec(t, pool, `select count(*) from pawl.periods`) + exec(t, pool, `select count(*) from pawl.audit`); n != 0 {
		t.Errorf("%d rows were written", n)
	}
}

func TestWrongDeclarationsOfParamsAreRefused(t *testing.T) {
	t.Parallel()
	for want, p := range map[string]Param{
		"use the type":                {Type: "date", Default: "x"},
		"a scheduled run needs":       {Type: ParamInt},
		"give a default of type int":  {Type: ParamInt, Default: "1"},
		"a default of type string":    {Type: ParamString, Default: int64(1)},
		"give values of type bool":    {Type: ParamBool, Default: true, Enum: []any{"true"}},
		"a default that is in the en": {Type: ParamNumber, Default: 1.5, Enum: []any{1, 2}},
	} {
		j := Job{Name: "j", Schedule: "@daily", Elsewhere: true, Params: map[string]Param{"p": p}}
		if err := j.Check(); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "Params.p") {
			t.Errorf("%+v: %v, want %q", p, err, want)
		}
	}
}

// The job was edited while the period waited: what was given fits no run.
func TestAParamThatDoesNotFitAnyMoreIsFinal(t *testing.T) {
	t.Parallel()
	j := Job{Name: "j", Params: map[string]Param{"n": {Type: ParamInt, Default: int64(1)}}}
	if _, err := j.params(map[string]string{"n": "dry"}); !errors.Is(err, ErrNoRetry) || !errors.Is(err, ErrParam) {
		t.Errorf("params = %v", err)
	}
	if got, err := j.params(map[string]string{"gone": "x"}); err != nil || len(got) != 1 || got["n"] != int64(1) {
		t.Errorf("params = %v, %v", got, err)
	}
}
