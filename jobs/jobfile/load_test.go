package jobfile_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/jobs"
	"pawl/jobs/jobfile"
)

// load reads the file that has every field, and returns one of its jobs as a runner takes it.
func load(t *testing.T, name string, h jobfile.Host) jobs.Job {
	t.Helper()
	source, err := os.ReadFile(filepath.Join("testdata", "ok", "complete.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	f, issues := jobfile.Parse(filepath.Join("testdata", "ok", "complete.yaml"), source, nil)
	if jobfile.Failed(issues, false) {
		t.Fatal(jobfile.Lines(issues))
	}
	i := slices.IndexFunc(f.Jobs, func(j jobfile.Job) bool { return j.Name == name })
	j, err := f.Jobs[i].Load(h)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func TestEveryFieldOfAJobReachesTheRunner(t *testing.T) {
	t.Parallel()
	j := load(t, "settle", jobfile.Host{Databases: map[string]*pgxpool.Pool{"warehouse": {}}})
	if j.Func == nil || j.Badge != "not fenced" {
		t.Errorf("function %v, badge %q", j.Func != nil, j.Badge)
	}
	j.Func = nil
	london, err := time.LoadLocation("Europe/London")
	if err != nil {
		t.Fatal(err)
	}
	want := jobs.Job{
		Name: "settle", RenameFrom: "settlement", Kind: "sql", Badge: j.Badge, Owner: "settlement-team", Schedule: "0 15 2 1 * 2-6", Seconds: true,
		Timezone: "Europe/London", DayMatch: "or", DST: jobs.DST{Gap: "skip", Overlap: "second"}, Period: "day", PeriodOffset: -1,
		Start: time.Date(2026, 9, 16, 0, 0, 0, 0, london).Add(-time.Microsecond).UTC(), Jitter: 90 * time.Second,
		CatchUp: "latest", CatchUpWindow: 240 * time.Hour, CatchUpMax: 20, Overlap: "skip", StartWithin: 6 * time.Hour,
		LateAfter: time.Minute, DueBy: "06:00+1d", Lock: "settlement", TTL: time.Minute, Timeout: jobs.NoTimeout, Grace: time.Minute,
		MaxRetries: jobs.NoRetries, RetryDelay: time.Second, RetryMaxDelay: 24 * time.Hour, OnDead: "alert", Isolation: "repeatable read",
		Needs: j.Needs, Alerts: []string{}, Concurrency: jobs.Concurrency{Key: "report:{{params.mode}}", Limit: 3}, Retention: jobs.Retention{Runs: 24 * time.Hour, Output: time.Hour},
		Params: map[string]jobs.Param{
			"mode": {Type: "string", Default: "full", Enum: []any{"full", "dry"}}, "limit": {Type: "int", Default: int64(5)},
			"rate": {Type: "number", Default: 0.5}, "dry": {Type: "bool", Default: false},
		},
	}
	if len(j.Needs) != 1 || j.Needs[0].Job != "import" {
		t.Errorf("needs %v", j.Needs)
	}
	j.Needs, want.Needs = nil, nil
	if got := render(j); got != render(want) {
		t.Errorf("got  %s\nwant %s", got, render(want))
	}
}

func TestAHandlerThatThisProcessDoesNotHaveIsElsewhere(t *testing.T) {
	t.Parallel()
	source := []byte("version: 1\njobs: [{name: recon, kind: go, owner: x, schedule: '@hourly', period: hour, go: {handler: other}}]")
	f, issues := jobfile.Parse("pawl.yaml", source, nil)
	if len(issues) > 0 {
		t.Fatal(jobfile.Lines(issues))
	}
	j, err := f.Jobs[0].Load(jobfile.Host{})
	if err != nil || !j.Elsewhere || j.Func != nil {
		t.Errorf("without it: elsewhere %t, %v", j.Elsewhere, err)
	}
	called := false
	h := jobfile.Host{Handlers: map[string]jobs.Func{"other": func(context.Context, *jobs.Run) error { called = true; return nil }}}
	if j, err = f.Jobs[0].Load(h); err != nil || j.Elsewhere {
		t.Fatalf("with it: elsewhere %t, %v", j.Elsewhere, err)
	}
	if err := j.Func(t.Context(), nil); err != nil || !called {
		t.Errorf("called %t, %v", called, err)
	}
}

func TestTheKindsAreLoaded(t *testing.T) {
	t.Parallel()
	h := jobfile.Host{Guardian: []string{"guardian"}}
	for name, badge := range map[string]string{"import": "fenced, once", "report": "not fenced"} {
		if j := load(t, name, h); j.Func == nil || j.Badge != badge {
			t.Errorf("%s: function %t, badge %q", name, j.Func != nil, j.Badge)
		}
	}
}

func TestShardsAndTheirReductionReachTheRunner(t *testing.T) {
	t.Parallel()
	h := jobfile.Host{Guardian: []string{"guardian"}, Databases: map[string]*pgxpool.Pool{"warehouse": {}}}
	for name, want := range map[string]struct {
		count           int
		by              string
		listed, reduced bool
	}{
		"accounts":   {16, "", false, true},
		"regions":    {0, "north, south", true, false},
		"statements": {0, "select id from tenants where since < $1 order by id [{{period.end}}] in warehouse", true, true},
		"handled":    {0, "select id from tenants", true, false},
		"ping":       {},
	} {
		j := load(t, name, h)
		if j.Shards != want.count || j.ShardsBy != want.by || (j.ShardKeys != nil) != want.listed || (j.Reduce != nil) != want.reduced {
			t.Errorf("%s: %d shards, by %q, listed %t, reduced %t", name, j.Shards, j.ShardsBy, j.ShardKeys != nil, j.Reduce != nil)
		}
	}
	keys, err := load(t, "regions", h).ShardKeys(t.Context(), nil)
	if err != nil || !slices.Equal(keys, []string{"north", "south"}) {
		t.Errorf("keys %q, %v", keys, err)
	}
}

// What a definition holds of many keys is short, and another list is another definition.
func TestAListOfAsManyShardsAsThereMayBeIsTaken(t *testing.T) {
	t.Parallel()
	parse := func(n int, last string) (jobs.Job, string) {
		t.Helper()
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprint("tenant-", i)
		}
		list[n-1] = last
		source := "version: 1\njobs: [{name: x, kind: go, owner: x, schedule: '@manual', shards: [" + strings.Join(list, ", ") + "], go: {}}]"
		f, issues := jobfile.Parse("pawl.yaml", []byte(source), nil)
		if len(issues) > 0 {
			return jobs.Job{}, jobfile.Lines(issues)
		}
		j, err := f.Jobs[0].Load(jobfile.Host{})
		if err != nil {
			t.Fatal(err)
		}
		return j, ""
	}
	a, _ := parse(10000, "north")
	b, said := parse(10000, "south")
	if said != "" || len(a.ShardsBy) > 400 || a.ShardsBy == b.ShardsBy {
		t.Errorf("%s: %d bytes, %q and %q", said, len(a.ShardsBy), a.ShardsBy, b.ShardsBy)
	}
	if _, said := parse(10001, "south"); !strings.Contains(said, "x.shards: has 10001 keys. List at most 10000.") {
		t.Errorf("10001 keys: %q", said)
	}
}

// render is the job without what can't be compared.
func render(j jobs.Job) string { return fmt.Sprintf("%+v", j) }

func TestWhatAJobSendsIsShownWithoutSecrets(t *testing.T) {
	t.Parallel()
	source := []byte("version: 1\njobs: [{name: n, kind: http, owner: x, schedule: '@hourly', http: {method: PUT, url: 'https://me:word@bank.example/${env:PART}/{{period.key}}?a=@b'}}]")
	f, issues := jobfile.Parse("pawl.yaml", source, func(string) string { return "s3cret" })
	if jobfile.Failed(issues, false) {
		t.Fatal(jobfile.Lines(issues))
	}
	j, err := f.Jobs[0].Load(jobfile.Host{})
	if want := "PUT https://bank.example/${env:PART}/{{period.key}}?a=@b"; err != nil || len(j.Sends) != 1 || j.Sends[0] != want {
		t.Errorf("Sends = %q, %v, want %q", j.Sends, err, want)
	}
}

func TestAnErrorInAChannelSpoilsThatChannelAlone(t *testing.T) {
	t.Parallel()
	source := []byte(`version: 1
channels: {ops: {webhook: "ftp://x.example/"}, ops2: {webhook: https://x.example/, on: [dead]}, unset: {webhook: "${env:NOT_SET}"}}
jobs: [{name: a, kind: go, owner: x, schedule: '@hourly', alerts: [ops], go: {}}]`)
	f, issues := jobfile.Parse("pawl.yaml", source, func(string) string { return "" })
	if f == nil || f.Jobs[0].Broken || !f.Channels["ops"].Broken || f.Channels["ops2"].Broken || !f.Channels["unset"].Broken {
		t.Fatal(jobfile.Lines(issues))
	}
	for _, i := range issues {
		if i.Severity == jobfile.Error && i.Channel != "ops" && i.Channel != "unset" {
			t.Errorf("%s is of channel %q", i, i.Channel)
		}
	}
	if got := f.Alerting(); len(got) != 1 || got[0].Name != "ops2" {
		t.Errorf("Alerting = %v", got)
	}
}
