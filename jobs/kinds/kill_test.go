package kinds_test

import (
	"bufio"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/internal/faults"
	"pawl/internal/pgtest"
	"pawl/jobs"
)

const beatsTTL = 2 * time.Second

// beats writes the attempt and the time into a file, every few milliseconds, and ends when a second one exists. It and
// its grandchild, which has left session and group, heed no TERM.
func beats(ctx context.Context, pool *pgxpool.Pool) ([]jobs.Job, error) {
	var dir string
	if err := pool.QueryRow(ctx, `select dir from beats`).Scan(&dir); err != nil {
		return nil, err
	}
	cmd := shell(`trap '' TERM
		beat() { while [ ! -e end ]; do echo "$PAWL_ATTEMPT $(cut -d' ' -f1 /proc/uptime) $1" >> beats; sleep 0.01; done; }
		( setsid sh -c 'trap "" TERM; while [ ! -e end ]; do echo "$PAWL_ATTEMPT $(cut -d" " -f1 /proc/uptime) far" >> beats; sleep 0.01; done' & )
		beat near`)
	cmd.Dir = dir
	fn, err := cmd.Func()
	return []jobs.Job{{Name: "x", Schedule: "0 0 * * *", Start: yesterday(), TTL: beatsTTL, RetryDelay: time.Second, Func: fn}}, err
}

func prepareBeats(t *testing.T) (url, dir string, pool *pgxpool.Pool) {
	t.Helper()
	url, dir = pgtest.URL(t), t.TempDir()
	pool = pgtest.Open(t, url)
	exec(t, pool, `create table beats as select $1::text as dir`, dir)
	return url, dir, pool
}

// written are the first beat of each attempt and the last one, in seconds, and how many there are of each loop.
func written(t *testing.T, dir string) (first, last map[string]float64, beats map[string]int) {
	t.Helper()
	first, last, beats = map[string]float64{}, map[string]float64{}, map[string]int{}
	f, err := os.Open(filepath.Join(dir, "beats"))
	if err != nil {
		return first, last, beats
	}
	defer func() { _ = f.Close() }()
	for s := bufio.NewScanner(f); s.Scan(); {
		w := strings.Fields(s.Text())
		if len(w) != 3 {
			continue // it is being written, or was killed over it
		}
		at, err := strconv.ParseFloat(w[1], 64)
		if err != nil {
			continue
		}
		if _, seen := first[w[0]]; !seen {
			first[w[0]] = at
		}
		last[w[0]] = at
		beats[w[0]+w[2]]++
	}
	return first, last, beats
}

func beating(t *testing.T, dir, attempt string) {
	t.Helper()
	pgtest.Eventually(t, 40*time.Second, "attempt "+attempt+" writes", func() bool {
		_, _, beats := written(t, dir)
		return beats[attempt+"near"] > 20 && beats[attempt+"far"] > 20 // so long that one of another attempt would show
	})
}

// succeeded checks that attempt 2 wrote only after the last of attempt 1, and lets it complete.
func succeeded(t *testing.T, pool *pgxpool.Pool, dir string) {
	t.Helper()
	beating(t, dir, "2")
	if err := os.WriteFile(filepath.Join(dir, "end"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	until(t, pool, 1, `select count(*) from pawl.periods where state = 'complete'`)
	first, last, _ := written(t, dir)
	t.Logf("first attempt ended %.2fs before the second", first["2"]-last["1"])
	if first["2"] < last["1"] {
		t.Errorf("attempt 2 began at %v, attempt 1 wrote until %v", first["2"], last["1"])
	}
}

func TestTheCommandOfAKilledWorkerIsGoneBeforeItsSuccessorStarts(t *testing.T) {
	t.Parallel()
	url, dir, pool := prepareBeats(t)
	w := faults.Spawn(t, "beats", url)
	beating(t, dir, "1")
	w.Kill(t)
	faults.Spawn(t, "beats", url)
	succeeded(t, pool, dir)
}

func TestTheCommandOfAStoppedWorkerIsGoneBeforeItsSuccessorStarts(t *testing.T) {
	t.Parallel()
	url, dir, pool := prepareBeats(t)
	w := faults.Spawn(t, "beats", url)
	beating(t, dir, "1")
	w.Signal(t, syscall.SIGSTOP)
	faults.Spawn(t, "beats", url)
	beating(t, dir, "2")
	w.Signal(t, syscall.SIGCONT)
	succeeded(t, pool, dir)
	if n := count(t, pool, `select count(*) from pawl.runs where state = 'complete'`); n != 1 {
		t.Errorf("%d runs are complete", n)
	}
}

func TestTheCommandOfAWorkerThatIsCutOffIsGoneBeforeItsSuccessorStarts(t *testing.T) {
	t.Parallel()
	url, dir, pool := prepareBeats(t)
	p, through := proxied(t, url)
	faults.Spawn(t, "beats", through)
	beating(t, dir, "1")
	p.Set(faults.Hole, 0)
	faults.Spawn(t, "beats", url)
	succeeded(t, pool, dir)
}

// force releases the lock of job x by force.
func force(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	var token int64
	if err := pool.QueryRow(t.Context(), `select token from pawl.locks where name = 'job:x'`).Scan(&token); err != nil {
		t.Fatal(err)
	}
	pgtest.Force(t, pool, "job:x", token, "a test of kinds")
}

// proxied is a way to the server that can be cut.
func proxied(t *testing.T, url string) (p *faults.Proxy, through string) {
	t.Helper()
	p, err := faults.NewProxy(filepath.Join(pgtest.Server(t).SocketDir(), ".s.PGSQL.5432"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	return p, "postgres://postgres@" + p.Addr() + "/" + cfg.ConnConfig.Database + "?sslmode=disable&connect_timeout=5"
}
