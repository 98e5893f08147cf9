package lockrepo

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// step is a node of a plan that was carried out.
type step struct {
	Type    string  `json:"Node Type"`
	Table   string  `json:"Relation Name"`
	Index   string  `json:"Index Name"`
	Rows    float64 `json:"Actual Rows"`
	Loops   float64 `json:"Actual Loops"`
	Removed float64 `json:"Rows Removed by Filter"`
	Recheck float64 `json:"Rows Removed by Index Recheck"`
	Plans   []step  `json:"Plans"`
}

// each calls f with every step.
func (s step) each(f func(step)) {
	f(s)
	for _, p := range s.Plans {
		p.each(f)
	}
}

// readsLittle carries sql out, once with a plan for its parameters and once with one for any, and makes sure that no table is
// read from end to end and that no step takes more than most rows from a table. It returns the indexes that were used.
func readsLittle(t *testing.T, pool *pgxpool.Pool, most int, sql string, args ...any) string {
	t.Helper()
	return readsLittleBut(t, pool, nil, most, sql, args...)
}

// present is what is, not what was: it may be read whole. An index of who is held would cost every acquire and release.
func present() []string { return []string{"locks", "keys"} }

// readsLittleBut is readsLittle for a statement that may read some tables whole.
func readsLittleBut(t *testing.T, pool *pgxpool.Pool, whole []string, most int, sql string, args ...any) string {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context())
	var values []string
	for _, a := range args {
		values = append(values, literal(t, a))
	}
	var used []string
	for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
		for _, s := range []string{"set local plan_cache_mode = " + mode, "prepare page as " + sql} {
			if _, err := tx.Exec(t.Context(), s, pgx.QueryExecModeSimpleProtocol); err != nil {
				t.Fatalf("%s: %v", s, err)
			}
		}
		execute := "execute page"
		if len(values) > 0 {
			execute += " (" + strings.Join(values, ", ") + ")"
		}
		var text string
		if err := tx.QueryRow(t.Context(), "explain (analyze, timing off, format json) "+execute, pgx.QueryExecModeSimpleProtocol).Scan(&text); err != nil {
			t.Fatalf("%s: %v", execute, err)
		}
		if _, err := tx.Exec(t.Context(), "deallocate page", pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatal(err)
		}
		var plans []struct {
			Plan step `json:"Plan"`
		}
		if err := json.Unmarshal([]byte(text), &plans); err != nil {
			t.Fatal(err)
		}
		text = ""
		plans[0].Plan.each(func(s step) {
			text += fmt.Sprintf("  %s %s %s rows=%.0f removed=%.0f loops=%.0f\n", s.Type, s.Table, s.Index, s.Rows, s.Removed+s.Recheck, s.Loops)
		})
		plans[0].Plan.each(func(s step) {
			if slices.Contains(whole, s.Table) || slices.Contains(whole, strings.TrimSuffix(s.Index, "_pkey")) {
				return
			}
			if n := (s.Rows + s.Removed + s.Recheck) * s.Loops; (s.Table != "" || s.Index != "") && n > float64(most) {
				t.Errorf("%s: %s of %s %s takes %.0f rows, at most %d wanted, by\n%s", mode, s.Type, s.Table, s.Index, n, most, text)
			}
			if s.Type == "Seq Scan" && s.Loops > 0 {
				t.Errorf("%s: all of %s is read by\n%s", mode, s.Table, text)
			}
			if s.Index != "" {
				used = append(used, s.Index)
			}
		})
	}
	return strings.Join(used, " ")
}

var strange = regexp.MustCompile(`['\\]`)

// literal writes a parameter into a statement.
func literal(t *testing.T, v any) string {
	t.Helper()
	quoted := func(s string) string {
		if strange.MatchString(s) {
			t.Fatalf("%q can't be written as a literal here", s)
		}
		return "'" + s + "'"
	}
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		return quoted(v)
	case []string:
		return quoted("{" + strings.Join(v, ",") + "}")
	case time.Time:
		return quoted(v.Format(time.RFC3339Nano))
	case *time.Time:
		if v == nil {
			return "null"
		}
		return quoted(v.Format(time.RFC3339Nano))
	default:
		return fmt.Sprint(v)
	}
}

// must carries statements out.
func must(t *testing.T, pool *pgxpool.Pool, statements ...string) {
	t.Helper()
	for _, sql := range statements {
		if _, err := pool.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// seed writes a history: 2,000 locks with 20 leases each, a minute apart and the last ended a second ago, the first 50 of them
// leased now; one lock with 20,000 more, runs that have left a checkpoint. Every tenth of the leases went stale.
func seed(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	must(t, pool,
		`insert into pawl.tenures (lock, token, grant_id, holder, acquired_at, expires_at, ended_at, how)
		 select format('l/%s', to_char(l, 'FM0000')), l * 100 + n, gen_random_uuid(), 'h' || l % 7, clock_timestamp() - n * interval '1 min' - interval '30 s',
		        clock_timestamp() - n * interval '1 min', clock_timestamp() - n * interval '1 min', case when n % 10 = 0 then 'taken_over' else 'released' end
		   from generate_series(1, 2000) l, generate_series(20, 1, -1) n`,
		`update pawl.tenures set token = token - 2 * (token % 100) + 100`, // the newest has the largest
		`insert into pawl.tenures (lock, token, grant_id, acquired_at, expires_at, ended_at, how)
		 select 'busy', 30000 - n, gen_random_uuid(), clock_timestamp() - n * interval '1 s' - interval '900 ms', clock_timestamp() - n * interval '1 s', clock_timestamp() - n * interval '1 s', 'released'
		   from generate_series(20000, 1, -1) n`,
		`insert into pawl.locks (name, token, incarnation, grant_id, holder, ttl, acquired_at, renewed_at, expires_at)
		 select lock, max(token) + 1, 1, case when lock <= 'l/0050' then gen_random_uuid() end, case when lock <= 'l/0050' then 'now' end, '1 h', clock_timestamp() - interval '10 s', clock_timestamp(),
		        case when lock <= 'l/0050' then clock_timestamp() + interval '1 h' end from pawl.tenures group by lock`,
		`insert into pawl.refusals (lock, token, current, holder, at, target, statement, late_by, passed, nth)
		 select lock, token, token + 1, holder, ended_at, 'ledger', 'UPDATE', '2 s', n = 1, case when n > 1 then nextval('pawl.refusals_nth') end
		   from pawl.tenures, generate_series(1, 3) n where how = 'taken_over' order by ended_at`,
		`insert into pawl.runs (id, job, key, revision, attempt, lock, token, state, started_at, ended_at)
		 select grant_id, 'settle', token::text, 1, 1, lock, token, 'complete', acquired_at, ended_at from pawl.tenures where lock = 'busy'`,
		`insert into pawl.checkpoints (job, key, revision, token, operation) select job, key, revision, token, id from pawl.runs`,
		`vacuum analyze`)
}
