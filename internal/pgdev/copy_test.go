package pgdev

import (
	"testing"
	"time"
)

func stopLater(t *testing.T, s *Server, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestAStandbyFollowsUntilItIsPromotedAndACopyStaysBehind(t *testing.T) {
	t.Parallel()
	primary := start(t, Options{Settings: map[string]string{"max_connections": "50"}})
	execSQL(t, primary.URL(), "create table t as select 1 as v")
	backup, err := primary.Copy(t.Context())
	stopLater(t, backup, err)
	standby, err := primary.Standby(t.Context())
	stopLater(t, standby, err)
	execSQL(t, primary.URL(), "insert into t values (2)")
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(20 * time.Second); query[int](t, standby.URL(), "select count(*) from t") != 2; <-tick.C {
		if time.Now().After(deadline) {
			t.Fatal("the standby doesn't follow")
		}
	}
	if err := primary.StopImmediate(); err != nil || primary.Pid() != 0 {
		t.Fatalf("stopped with %v, process %d", err, primary.Pid())
	}
	if err := standby.Promote(t.Context()); err != nil {
		t.Fatal(err)
	}
	execSQL(t, standby.URL(), "insert into t values (3)")
	if err := backup.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := query[int](t, backup.URL(), "select count(*) from t"); n != 1 {
		t.Errorf("the copy has %d rows, want the 1 of its backup", n)
	}
	if got := query[string](t, backup.URL(), "select current_setting('max_connections')"); got != "50" {
		t.Errorf("the copy has max_connections %s, want the 50 of its original", got)
	}
	if err := primary.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := query[int](t, primary.URL(), "select count(*) from t"); n > 2 {
		t.Errorf("the old primary has %d rows of a server that it knows nothing of", n)
	}
}
