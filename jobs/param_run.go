package jobs

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

const (
	paramsOfSQL = `
select coalesce(params::text, '{}') from pawl.periods where job = $1 and key = $2 and revision = $3`

	// What was given before stays where nothing else is given.
	paramsSQL = `
update pawl.periods p set params = coalesce(p.params, '{}') || $4::text::jsonb
  from unnest($2::text[], $3::int[]) q (key, revision)
 where p.job = $1 and p.key = q.key and p.revision = q.revision and p.state not in ('running', 'complete')`
)

// queueParams queues that periods which have a row are given params.
func queueParams(b *batch, job string, keys []string, revisions []int, params json.RawMessage) {
	if params != nil && len(keys) > 0 {
		b.Queue(paramsSQL, job, keys, revisions, string(params))
	}
}

// paramDetail is the audit's detail of who was given what.
func paramDetail(params map[string]string) string {
	if len(params) == 0 {
		return ""
	}
	return detail(map[string]any{"params": params})
}

// loadParams reads what the run's period was given, and fills in the defaults. Nothing is asked for a job without params.
func (r *Run) loadParams(ctx context.Context) error {
	if len(r.job.Params) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var text string
	if err := r.runner.pool.QueryRow(ctx, paramsOfSQL, r.Job, r.Period.Key, r.Revision).Scan(&text); err != nil {
		return fmt.Errorf("jobs: params of %s %s: %w", r.Job, r.Period.Key, err)
	}
	given, err := givenTexts([]byte(text))
	if err != nil {
		return fmt.Errorf("jobs: params of %s %s: %w", r.Job, r.Period.Key, err)
	}
	r.Params, err = r.job.params(given)
	return err
}

// params are the values of a run. What isn't declared any more is left out; a value that doesn't fit any more, since the
// job has been edited meanwhile, fits no other run either.
func (j Job) params(given map[string]string) (Params, error) {
	out := Params{}
	for name, p := range j.Params {
		text, set := given[name]
		if !set && p.Default == nil {
			return nil, fmt.Errorf("%w: %w", ErrNoRetry, &ParamError{j.Name, name, "", "is missing", "cancel the period, and trigger it with a value"})
		}
		s := p.shape()
		if !set {
			text = *s.Default
		}
		v, problem, fix := s.value(text)
		if problem != "" {
			return nil, fmt.Errorf("%w: %w", ErrNoRetry, &ParamError{j.Name, name, text, problem, fix})
		}
		out[name] = v
	}
	return out, nil
}

// givenTexts are the values that are stored of a period, as people write them.
func givenTexts(stored []byte) (map[string]string, error) {
	values := map[string]any{}
	if len(stored) > 0 {
		d := json.NewDecoder(bytes.NewReader(stored))
		d.UseNumber() // no digit of a large one is lost
		if err := d.Decode(&values); err != nil {
			return nil, err
		}
	}
	out := make(map[string]string, len(values))
	for name, v := range values {
		out[name] = paramText(v)
	}
	return out, nil
}

// paramWords are what a period was given, as name=value, sorted.
func paramWords(stored []byte) string {
	given, err := givenTexts(stored)
	if err != nil {
		return string(stored)
	}
	words := make([]string, 0, len(given))
	for _, name := range slices.Sorted(maps.Keys(given)) {
		words = append(words, name+"="+given[name])
	}
	return strings.Join(words, ", ")
}
