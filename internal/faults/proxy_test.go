package faults_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"pawl/internal/faults"
	"pawl/internal/pgtest"
)

// between makes a table and a way to it through a proxy.
func between(t *testing.T) (*faults.Proxy, *pool, *pgx.Conn) {
	t.Helper()
	direct := pgtest.New(t)
	if _, err := direct.Exec(t.Context(), `create table arrived ()`); err != nil {
		t.Fatal(err)
	}
	p, err := faults.NewProxy(socket(pgtest.Server(t)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	conn, err := connect(t.Context(), "postgres://postgres@"+p.Addr()+"/"+direct.Config().ConnConfig.Database+"?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return p, direct, conn
}

// ask writes a row and says how long the answer took.
func ask(t *testing.T, conn *pgx.Conn) (took time.Duration, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	begun := time.Now()
	_, err = conn.Exec(ctx, `insert into arrived default values`)
	return time.Since(begun), err
}

func arrived(t *testing.T, direct *pool) (n int) {
	t.Helper()
	if err := direct.QueryRow(t.Context(), `select count(*) from arrived`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestEachModeOfTheProxyDoesWhatItSays(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		mode     faults.Mode
		answered bool
		arrives  int
		least    time.Duration
	}{
		"pass":    {faults.Pass, true, 1, 0},
		"late":    {faults.Late, true, 1, 300 * time.Millisecond},
		"hole":    {faults.Hole, false, 0, time.Second},
		"swallow": {faults.Swallow, false, 1, time.Second},
		"refuse":  {faults.Refuse, false, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, direct, conn := between(t)
			p.Set(c.mode, 300*time.Millisecond)
			took, err := ask(t, conn)
			if (err == nil) != c.answered || took < c.least {
				t.Errorf("answered %t after %s (%v), want %t after %s at least", err == nil, took, err, c.answered, c.least)
			}
			if n := arrived(t, direct); n != c.arrives {
				t.Errorf("%d rows arrived, want %d", n, c.arrives)
			}
			p.Set(faults.Pass, 0)
			again, err := connect(t.Context(), conn.Config().ConnString())
			if err != nil {
				t.Fatalf("connect once the fault is over: %v", err)
			}
			if err := again.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAConnectionThatHasLostBytesIsCut(t *testing.T) {
	t.Parallel()
	p, _, conn := between(t)
	p.Set(faults.Swallow, 0)
	p.Set(faults.Pass, 0)
	if took, err := ask(t, conn); err == nil || took >= time.Second {
		t.Errorf("answered with %v after %s, want a cut connection", err, took)
	}
}
