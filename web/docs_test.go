package web_test

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"pawl/internal/pgtest"
	"pawl/jobs"
	"pawl/lockrepo"
)

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

var (
	heading  = regexp.MustCompile(`(?m)^#+ (.+)$`)
	unlinked = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	fences   = regexp.MustCompile("(?s)```.*?```")
)

// anchors are what a link into a page may name, as GitHub makes them of its headings.
func anchors(page string) map[string]bool {
	found := map[string]bool{}
	for _, h := range heading.FindAllStringSubmatch(fences.ReplaceAllString(page, ""), -1) {
		found[strings.ReplaceAll(unlinked.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-")] = true
	}
	return found
}

func TestEveryLinkOfTheDocsLeadsSomewhere(t *testing.T) {
	t.Parallel()
	link := regexp.MustCompile(`\]\(([^)\s]*)\)`)
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	links := 0
	for _, page := range append(pages, "../README.md", "../CONTRIBUTING.md", "../SECURITY.md", "../CHANGELOG.md") {
		for _, l := range link.FindAllStringSubmatch(fences.ReplaceAllString(read(t, page), ""), -1) {
			file, anchor, _ := strings.Cut(l[1], "#")
			if strings.Contains(file, "://") || strings.HasPrefix(file, "mailto:") {
				continue
			}
			links++
			target := page
			if file != "" {
				target = filepath.Join(filepath.Dir(page), file)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which is not there", page, l[1])
			} else if anchor != "" && !anchors(read(t, target))[anchor] {
				t.Errorf("%s links to %s, and %s has no such heading", page, l[1], target)
			}
		}
	}
	if links < 30 {
		t.Errorf("%d links, want more: is the pattern right?", links)
	}
}

// Somebody who is woken at night follows these.
func TestEveryAlertHasItsPageInTheRunbookAndTheOtherWayRound(t *testing.T) {
	t.Parallel()
	rules, runbook := read(t, "../docs/alerts.yaml"), read(t, "../docs/runbook.md")
	there := anchors(runbook)
	alerts := regexp.MustCompile(`(?m)^ *- alert: (\w+)$`).FindAllStringSubmatch(rules, -1)
	pages := regexp.MustCompile(`(?m)^ *runbook: docs/runbook\.md#(\S+)$`).FindAllStringSubmatch(rules, -1)
	if len(alerts) < 10 || len(pages) != len(alerts) {
		t.Fatalf("%d alerts have %d pages", len(alerts), len(pages))
	}
	for i, p := range pages {
		if !there[p[1]] {
			t.Errorf("%s leads to #%s, which the runbook doesn't have", alerts[i][1], p[1])
		}
	}
	for _, h := range regexp.MustCompile(`(?m)^## (Pawl\w+)$`).FindAllStringSubmatch(runbook, -1) {
		if !slices.ContainsFunc(alerts, func(a []string) bool { return a[1] == h[1] }) {
			t.Errorf("the runbook has a page %s, and no alert of that name exists", h[1])
		}
	}
}

// What a program says of the runbook has to be there: a heading after its name, or an anchor.
func TestEveryPageOfTheRunbookThatAProgramNamesExists(t *testing.T) {
	t.Parallel()
	runbook := read(t, "../docs/runbook.md")
	there := anchors(runbook)
	anchor := regexp.MustCompile(`runbook(?:\.md)?#([\w-]+)`)
	named := regexp.MustCompile(`runbook(?:\.md)?,? (?:page |under )?"?(Pawl\w+)`)
	mentions := 0
	for _, root := range []string{"../cmd", "../jobs", "../lockrepo", "../fence", "../migrations", "../examples"} {
		err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(file, ".go") && !strings.HasSuffix(file, ".sql") {
				return err
			}
			source := read(t, file)
			for _, m := range append(anchor.FindAllStringSubmatch(source, -1), named.FindAllStringSubmatch(source, -1)...) {
				if mentions++; !there[strings.ToLower(m[1])] {
					t.Errorf("%s names %s of the runbook, which isn't there", file, m[1])
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if mentions == 0 {
		t.Error("no program names a page of the runbook: is the pattern right?")
	}
}

// service is a program with the page of the example, on a database of its own, that has done some work.
func service(t *testing.T) (url string) {
	t.Helper()
	pool := pgtest.New(t)
	registry := prometheus.NewRegistry()
	locks, err := lockrepo.New(lockrepo.Config{Pool: pool, Registerer: registry})
	if err != nil {
		t.Fatal(err)
	}
	runner, err := jobs.New(jobs.Config{Pool: pool, Registerer: registry})
	if err != nil {
		t.Fatal(err)
	}
	tick := func(context.Context, *jobs.Run) error { return nil }
	broken := func(context.Context, *jobs.Run) error { return errors.New("no") }
	err = errors.Join(
		runner.Add(jobs.Job{Name: "tick", Schedule: "@every 1s", Func: tick}),
		runner.Add(jobs.Job{Name: "broken", Schedule: "@every 1s", MaxRetries: jobs.NoRetries, Func: broken}),
	)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- runner.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		locks.Close()
	})
	mux := http.NewServeMux()
	mux.Handle("/pawl/", watch(pool, locks, runner, registry))
	return serve(t, mux).URL
}

func TestTheExamplesPageIsServedAndTellsWhenItIsReady(t *testing.T) {
	t.Parallel()
	url := service(t)
	eventually(t, "the runner is ready", func() bool { return send(t, http.MethodGet, url+"/pawl/readyz").status == http.StatusOK })
	eventually(t, "the page shows a run", func() bool {
		return strings.Contains(send(t, http.MethodGet, url+"/pawl/").body, `>complete</a>`)
	})
}

// An alert on a name that nobody reports never fires.
func TestEveryMetricOfTheAlertsIsReported(t *testing.T) {
	t.Parallel()
	rules := read(t, "../docs/alerts.yaml")
	rules = regexp.MustCompile(`(?m)^\s*#.*$`).ReplaceAllString(rules, "")
	used := regexp.MustCompile(`\bpawl_\w+(?:\{\w+)?`).FindAllString(rules, -1)
	slices.Sort(used)
	if used = slices.Compact(used); len(used) < 8 {
		t.Fatalf("the alerts use %v only: is the pattern right?", used)
	}
	url := service(t)
	var missing []string
	reported := func() bool {
		metrics := send(t, http.MethodGet, url+"/pawl/metrics").body
		missing = slices.DeleteFunc(slices.Clone(used), func(use string) bool {
			name, label, _ := strings.Cut(use, "{")
			pattern := `(?m)^` + name + `[ {]`
			if label != "" {
				pattern = `(?m)^` + name + `\{(?:.*,)?` + label + `="`
			}
			return regexp.MustCompile(pattern).MatchString(metrics)
		})
		return len(missing) == 0
	}
	defer func() {
		if t.Failed() {
			t.Errorf("nobody reports %v", missing)
		}
	}()
	eventually(t, "every metric of docs/alerts.yaml is on the page of a service that works", reported)
}

// docs/choosing.md says how short a lease may be.
func TestTheShortestTTLIsAsTheDocsSay(t *testing.T) {
	t.Parallel()
	said := regexp.MustCompile(`The shortest is (\d+ \w+) for a job and (\d+ \w+) for a lease`).FindStringSubmatch(read(t, "../docs/choosing.md"))
	if said == nil {
		t.Fatal("docs/choosing.md doesn't say how short a lease may be")
	}
	pool := pgtest.New(t)
	job := func(ttl time.Duration) error {
		runner, err := jobs.New(jobs.Config{Pool: pool})
		if err != nil {
			t.Fatal(err)
		}
		return runner.Add(jobs.Job{Name: "j", Schedule: "@manual", TTL: ttl, Func: func(context.Context, *jobs.Run) error { return nil }})
	}
	lease := func(ttl time.Duration) error {
		repo, err := lockrepo.New(lockrepo.Config{Pool: pool, TTL: ttl})
		if err == nil {
			repo.Close()
		}
		return err
	}
	for i, try := range []func(time.Duration) error{job, lease} {
		ttl, err := time.ParseDuration(strings.ReplaceAll(said[i+1], " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		if err := try(ttl); err != nil {
			t.Errorf("%s should be allowed: %v", said[i+1], err)
		}
		if try(ttl-time.Millisecond) == nil {
			t.Errorf("a millisecond less than %s is allowed too", said[i+1])
		}
	}
}
