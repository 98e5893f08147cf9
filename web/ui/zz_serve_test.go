package ui_test

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"pawl/internal/pgtest"
	"pawl/lockrepo"
	"pawl/lockrepo/approvals"
	"pawl/lockrepo/keys"
	"pawl/jobs"
	"pawl/web"
)

func TestZZServe(t *testing.T) {
	if os.Getenv("ZZ") == "" {
		return
	}
	pool := pgtest.New(t)
	for _, q := range []string{story, days, much, `
update pawl.schedules set definition='{"schedule": "0 2 * * *", "period": "day", "timezone": "UTC", "runs": 4}' where job = 'settle';`} {
		if q == days {
			q = `insert into pawl.schedules (job, app, definition, lock, watermark) values
  ('report', 'shop', '{"schedule": "@hourly", "period": "hour", "timezone": "UTC", "runs": 4}', 'job:report', now()),
  ('hand', 'back', '{"schedule": "@manual", "period": "tick", "runs": 4}', 'job:hand', now());
insert into pawl.periods (job, key, lock, state, start_at, end_at, scheduled_at, attempts, ended_at, reason, token)
values ('report', '2026-11-29T10', 'job:report', 'complete', '2026-11-29T10:00:00Z', '2026-11-29T11:00:00Z', '2026-11-29T11:00:00Z', 1, now(), null, 1795969942676571);`
		}
		if _, err := pool.Exec(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	store := keys.New(pool)
	locks, err := lockrepo.New(lockrepo.Config{Pool: pool})
	if err != nil {
		t.Fatal(err)
	}
	cfg := web.Config{Locks: locks, Jobs: jobs.NewHistory(pool), API: locks, Version: "test", Database: "orders", Acts: web.NewActs(pool, store, nil), Approvals: approvals.New(pool, nil)}
	cfg.Keys = store
	for _, k := range []keys.Key{{Name: "ann", Role: keys.Operator}, {Name: "bob", Role: keys.Operator, Approver: true}, {Name: "settlement-worker", Role: keys.Worker, Prefix: "payments/"}, {Name: "eve", Role: keys.Reader}} {
		k.CreatedBy = "root@desk"
		b, _, err := store.Create(t.Context(), k)
		if err != nil {
			t.Fatal(err)
		}
		os.WriteFile("/tmp/u3shot/"+k.Name, []byte(b), 0o600)
	}
	h := web.Handler(cfg)
	for i, who := range []string{"ann", "bob", "eve"} {
		bearer, _ := os.ReadFile("/tmp/u3shot/" + who)
		for j, theme := range []string{"light", "dark"} {
			ln, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 18500+10*i+j))
			if err != nil {
				t.Fatal(err)
			}
			go http.Serve(ln, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				r.Header.Set("Cookie", "pawl_key="+string(bearer)+"; pawl_theme="+theme)
				h.ServeHTTP(w, r)
			}))
		}
	}
	for {
		if _, err := os.Stat("/tmp/u3shot/stop"); err == nil {
			return
		}
		time.Sleep(time.Second)
	}
}
