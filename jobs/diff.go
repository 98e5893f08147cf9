package jobs

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// What a difference is.
const (
	DiffNew     = "new"     // it would be stored
	DiffChanged = "changed" // it would be stored anew
	DiffRenamed = "renamed" // it takes the place of the one that it was
	DiffRetired = "retired" // it is stored, and would be retired
	DiffOther   = "other"   // another app has it: it would be refused
)

// Difference is what storing some jobs would change of one.
type Difference struct {
	Job    string        `json:"job"`
	What   string        `json:"what"`
	Fields []FieldChange `json:"fields"` // of a changed one
}

// FieldChange is one field of a definition, as it is stored and as it would be; empty: its default.
type FieldChange struct {
	Field string `json:"field"`
	Was   string `json:"was"`
	Is    string `json:"is"`
}

// Diff tells what storing all jobs of an app would change, by name. It changes nothing. What has no effect on when a job
// runs, and so isn't stored, is no difference.
func Diff(ctx context.Context, pool *pgxpool.Pool, app string, all []Job) ([]Difference, error) {
	stored, err := storedDefinitions(ctx, pool)
	if err != nil {
		return nil, err
	}
	out := []Difference{}
	ours := map[string]bool{}
	for _, j := range all {
		j, err := j.withDefaults()
		if err != nil {
			return nil, &JobError{Job: j.Name, Err: err}
		}
		ours[j.Name] = true
		d := j.definition(app)
		old, there := stored[j.Name]
		former := stored[j.RenameFrom]
		if there {
			d = old.keepsLock(d)
		}
		switch {
		case former != nil && former.App == app && !former.retired() && (!there || old.retired()):
			former.renamed, ours[former.Job] = true, true
			out = append(out, Difference{j.Name, DiffRenamed, append([]FieldChange{{"name", former.Job, j.Name}}, former.changes(former.keepsLock(d))...)})
		case there && old.App != app:
			out = append(out, Difference{j.Name, DiffOther, []FieldChange{{"app", old.App, app}}})
		case !there || old.retired():
			out = append(out, Difference{j.Name, DiffNew, []FieldChange{}})
		case old.unreadable != nil || !old.same(d):
			out = append(out, Difference{j.Name, DiffChanged, old.changes(d)})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(stored)) {
		if p := stored[name]; p.App == app && !p.retired() && !ours[name] {
			out = append(out, Difference{name, DiffRetired, []FieldChange{}})
		}
	}
	return out, nil
}

func storedDefinitions(ctx context.Context, pool *pgxpool.Pool) (map[string]*planned, error) {
	rows, err := pool.Query(ctx, `select `+plannedColumns+` from pawl.schedules`)
	if err != nil {
		return nil, err
	}
	list, err := pgx.CollectRows(rows, scanPlanned)
	all := map[string]*planned{}
	for _, p := range list {
		all[p.Job] = p
	}
	return all, err
}

// changes lists the fields that another definition has otherwise.
func (p *planned) changes(d definition) []FieldChange {
	was, is := fields(p.stored), fields(d.json())
	was["lock"], is["lock"] = quoted(p.Lock), quoted(d.Lock)
	names := map[string]bool{}
	for name := range was {
		names[name] = true
	}
	for name := range is {
		names[name] = true
	}
	out := []FieldChange{}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if a, b := was[name], is[name]; !bytes.Equal(a, b) {
			out = append(out, FieldChange{name, string(a), string(b)})
		}
	}
	return out
}

func fields(definition []byte) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	_ = json.Unmarshal(definition, &out) // what can't be read has no fields
	for name, value := range out {
		var b bytes.Buffer
		if json.Compact(&b, value) == nil {
			out[name] = b.Bytes()
		}
	}
	return out
}

func quoted(s string) json.RawMessage {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string
	}
	return b
}
