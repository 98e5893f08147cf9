package bench_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// explainAll explains each statement that was sent, and shows those that took longest.
func explainAll(t *testing.T, pool *pgxpool.Pool, s *sent) {
	t.Helper()
	n := 0
	for key, q := range s.first {
		sql, args := q.sql, q.args
		if !explainable.MatchString(sql) || !strings.Contains(sql, "pawl.") || strings.Contains(sql, ";") || strings.Contains(sql, "pawl.adopt") {
			continue
		}
		n++
		plan, buffers, err := explain(t.Context(), pool, sql, args)
		short := strings.Join(strings.Fields(sql), " ")
		short = short[:min(len(short), 150)]
		if err != nil {
			t.Logf("not explained: %s: %v", short, err)
			continue
		}
		if median(s.took[key]) > largeGoal/10 || buffers > largeBuffers/10 {
			figure(t, fmt.Sprintf("%d buffers: %s", buffers, short), s.took[key], !aboutAll(args))
		}
		if m := wholeTable.FindStringSubmatch(plan); m != nil {
			t.Errorf("%s: reads all of pawl.%s:\n%s", sql, m[1], plan)
		}
		most := largeBuffers
		if aboutAll(args) {
			most = largeAll * largeJobs
		}
		if buffers > most {
			t.Errorf("%s\n%v: reads %d buffers, want at most %d:\n%s", sql, args, buffers, most, plan)
		}
	}
	t.Logf("%d statements explained", n)
	if n < 40 {
		t.Errorf("%d statements were seen: is the pattern right?", n)
	}
}

// isList reports a question of [jobs.History].
func isList(args []any) bool {
	if len(args) == 0 {
		return false
	}
	_, ok := args[0].(pgx.NamedArgs)
	return ok
}

// aboutAll reports a list's question that names no job.
func aboutAll(args []any) bool {
	if len(args) != 1 {
		return false
	}
	named, ok := args[0].(pgx.NamedArgs)
	return ok && named["job"] == ""
}

// explain runs a statement in a transaction that is rolled back, on the terms of a runner's own connections, or of
// the lists.
func explain(ctx context.Context, pool *pgxpool.Pool, sql string, args []any) (plan string, buffers int, err error) {
	tx, err := pool.Begin(ctx)
	if err != nil {
		return "", 0, err
	}
	defer func() { err = errors.Join(err, tx.Rollback(context.WithoutCancel(ctx))) }()
	settings := []string{`set local plan_cache_mode = force_custom_plan`, `set local statement_timeout = '10 s'`}
	if !isList(args) {
		settings = append(settings, `set local enable_seqscan = off`, `set local jit = off`)
	}
	for _, set := range settings {
		if _, err := tx.Exec(ctx, set); err != nil {
			return "", 0, err
		}
	}
	if err := tx.QueryRow(ctx, `explain (analyze, buffers, timing off, format json) `+sql, args...).Scan(&plan); err != nil {
		return "", 0, err
	}
	var top []struct {
		Plan struct {
			Hit  int `json:"Shared Hit Blocks"`
			Read int `json:"Shared Read Blocks"`
		}
	}
	if err := json.Unmarshal([]byte(plan), &top); err != nil {
		return "", 0, err
	}
	return plan, top[0].Plan.Hit + top[0].Plan.Read, nil
}
