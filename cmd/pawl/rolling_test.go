package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"pawl/internal/pgtest"
)

// rollFor is how long two apps are deployed to and fro: 12 s, or what PAWL_ROLLING says, such as 2m.
func rollFor(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("PAWL_ROLLING")
	if text == "" {
		return 12 * time.Second
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("PAWL_ROLLING is %q: use a duration such as 2m", text)
	}
	return d
}

// deployment is an app's two replicas, which are restarted one after the other.
type deployment struct {
	app      string
	files    [2]string // the old file and the new one
	replicas [2]*process
}

func (d *deployment) start(t *testing.T, db string, replica, file int) {
	t.Helper()
	d.replicas[replica] = start(t, []string{"DATABASE_URL=" + db}, "serve", "--config", d.files[file], "--listen", "", "--log-format", "json", "--concurrency", "4")
}

// roll restarts a replica with one of the files: politely, or not.
func (d *deployment) roll(t *testing.T, db string, n int) {
	t.Helper()
	replica, file := n%2, n/2%2
	sig := syscall.SIGTERM
	if n%5 == 4 {
		sig = syscall.SIGKILL
	}
	d.replicas[replica].signal(t, sig)
	d.replicas[replica].ends(t, 30*time.Second)
	d.start(t, db, replica, file)
	d.replicas[replica].hears(t, 30*time.Second, "runner started")
	const newest = `select coalesce(max(scheduled_at), 'epoch')::text from pawl.periods where job = $1`
	before := answer(t, db, newest, d.app+"_kept")
	pgtest.Eventually(t, 30*time.Second, "a tick is planned", func() bool { return answer(t, db, newest, d.app+"_kept") != before })
}

const rollingJob = `
  - {name: NAME, kind: sql, schedule: "@every 1s", period: tick, ttl: 2s, timeout: 30s, catch_up: all, sql: {statement: "insert into ran (job, period) values ('NAME', $1)", args: ["{{period.key}}"]}}
`

func rolling(names ...string) string {
	var b strings.Builder
	for _, name := range names {
		b.WriteString(strings.ReplaceAll(rollingJob, "NAME", name))
	}
	return b.String()
}

// Every second of every job is in a row, once; those that ran wrote once.
func TestTwoAppsAreDeployedToAndFroAndNoTickIsLostOrDoubled(t *testing.T) {
	t.Parallel()
	db, dir := pgtest.URL(t), t.TempDir()
	execute(t, db, `create table ran (job text, period text)`)
	var apps []*deployment
	for _, app := range []string{"shop", "bank"} {
		d := &deployment{app: app, files: [2]string{filepath.Join(dir, app+"-old.yaml"), filepath.Join(dir, app+"-new.yaml")}}
		write(t, d.files[0], rolling(app+"_kept"))
		write(t, d.files[1], strings.Replace(rolling(app+"_kept", app+"_new"), "30s", "31s", 1)) // one is edited, one is new
		for _, f := range d.files {
			rename(t, f, "app: shop", "app: "+app)
		}
		d.start(t, db, 0, 0)
		d.start(t, db, 1, 0)
		apps = append(apps, d)
	}
	for _, d := range apps {
		eventually(t, db, "true", ranSQL, d.app+"_kept")
	}
	end := time.Now().Add(rollFor(t))
	rounds := 0
	for ; rounds < 8 || time.Now().Before(end); rounds++ { // each file meets each replica
		for _, d := range apps {
			d.roll(t, db, rounds)
		}
	}
	for _, d := range apps { // what is deployed last is the new one
		for replica := range d.replicas {
			d.replicas[replica].signal(t, syscall.SIGTERM)
			d.replicas[replica].ends(t, 30*time.Second)
			d.start(t, db, replica, 1)
		}
	}
	for _, d := range apps {
		for _, job := range []string{d.app + "_kept", d.app + "_new"} {
			eventually(t, db, "true", `select coalesce(max(scheduled_at) > clock_timestamp() - interval '5 s', false)::text from pawl.periods where job = $1 and state = 'complete'`, job)
			eventually(t, db, "0", `select count(*)::text from pawl.periods where job = $1 and ended_at is null and scheduled_at < clock_timestamp() - interval '5 s'`, job)
			const whole = `
select (sum(ticks) = extract(epoch from max(coalesce(last_at, scheduled_at)) - min(scheduled_at))::int + 1)::text || ', ' || sum(ticks) || ' ticks'
  from pawl.periods where job = $1`
			if got := answer(t, db, whole, job); !strings.HasPrefix(got, "true") {
				t.Errorf("%s: every second is planned once: %s", job, got)
			}
			if n := answer(t, db, `select count(*)::text from (select from ran where job = $1 group by period having count(*) > 1) x`, job); n != "0" {
				t.Errorf("%s: %s ticks ran twice", job, n)
			}
			const missing = `
select count(*)::text from pawl.periods p where job = $1 and state = 'complete' and not exists (select from ran r where r.job = p.job and r.period = p.key)`
			if n := answer(t, db, missing, job); n != "0" {
				t.Errorf("%s: %s ticks are complete and didn't run", job, n)
			}
		}
		const byOther = `
select count(*)::text from pawl.audit a where a.action = 'retire' and a.job like $1 || '_%' and a.reason not like 'app ' || $1 || ' %'`
		if n := answer(t, db, byOther, d.app); n != "0" {
			t.Errorf("%s: %s jobs were retired by another app", d.app, n)
		}
		if n := answer(t, db, `select count(*)::text from pawl.schedules where app = $1 and retired_at is null`, d.app); n != "2" {
			t.Errorf("%s has %s jobs at the end", d.app, n)
		}
	}
	t.Logf("%d rounds, %s rows", rounds, answer(t, db, `select count(*)::text from pawl.periods`))
}

func rename(t *testing.T, file, old, fresh string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(b), old, fresh, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
}

func execute(t *testing.T, db, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}
