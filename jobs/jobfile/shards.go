package jobfile

import (
	"context"
	"fmt"
	"hash/crc32"
	"reflect"
	"slices"
	"strings"

	"pawl/jobs"
	"pawl/jobs/kinds"
)

// Shards says into what each period is parted. It is written as a number, as a list of keys, or as a map of the fields.
type Shards struct {
	Statement string `yaml:"statement" raw:"true" doc:"A query of one column, whose rows are the keys. Asked once for each revision of a period; or else file."`
	File      string `yaml:"file" doc:"A file with the query, relative to the job file; or else statement."`
	Args      []any  `yaml:"args" text:"both" scalar:"true" doc:"Bound as $1, $2, …; never pasted into the text."`
	Database  string `yaml:"database" default:"pawl" doc:"pawl (the fenced one), or a name under databases."`

	// Count is the number, Keys the list that is written in place of the map.
	Count int      `yaml:"-"`
	Keys  []string `yaml:"-"`
	// Text is Statement, or what File holds.
	Text string `yaml:"-"`

	form kind // number, list or mapping
}

// Reduce is what completes a period of a job with shards. Args hold what [SQL].Args hold.
type Reduce struct {
	Statement string  `yaml:"statement" raw:"true" doc:"The SQL text; or else file. Guard, statements, expectation and the period's completion are one commit, in database pawl."`
	File      string  `yaml:"file" doc:"A file with the SQL text, relative to the job file; or else statement."`
	Args      []any   `yaml:"args" text:"both" scalar:"true" doc:"Bound as $1, $2, …; never pasted into the text."`
	Expect    SQLNeed `yaml:"expect" doc:"What must be true, or the run fails and the period isn't complete."`

	// Text is Statement, or what File holds.
	Text string `yaml:"-"`
}

// mostShards is how many shards a period may have.
const mostShards = 10_000

// readShards reads one of the three ways to write shards.
func (r *reader) readShards(v reflect.Value, n *node, path string) {
	s := &Shards{form: n.kind}
	own := reflect.ValueOf(s).Elem()
	const fix = "Write a number, [north, south] or {statement: …}."
	problem := ""
	switch n.kind {
	case mapping:
		r.readStruct(own, n, path)
	case list:
		r.readList(own.FieldByName("Keys"), n, path, field{name: "shards", typ: reflect.TypeFor[[]string](), raw: true})
	case number:
		count := field{min: "1", max: fmt.Sprint(mostShards)}
		problem = setInt(own.FieldByName("Count"), n, count)
	case null:
		problem = "is empty. " + fix
	default:
		problem = fmt.Sprintf("%q is %s. %s", n.text, n.kind, fix)
	}
	if problem != "" {
		r.bad(path, "%s", problem)
	}
	v.Set(reflect.ValueOf(s))
}

// ofWhole reports whether what is at path is done once for the whole period of a job with shards.
func ofWhole(path string) bool {
	rest := strings.TrimPrefix(path, jobOf(path))
	return strings.HasPrefix(rest, ".shards.") || strings.HasPrefix(rest, ".reduce.")
}

// part gives the job its shards and what reduces them.
func (j *Job) part(out *jobs.Job, h Host) (err error) {
	if j.Shards == nil {
		return nil
	}
	if err := j.Shards.load(out, h); err != nil {
		return fmt.Errorf("shards: %w", err)
	}
	if j.Reduce == nil {
		return nil
	}
	if out.Reduce, err = j.Reduce.load(); err != nil {
		return fmt.Errorf("reduce: %w", err)
	}
	return nil
}

func (s *Shards) load(out *jobs.Job, h Host) (err error) {
	switch out.Shards = s.Count; {
	case s.Count > 0:
	case len(s.Keys) > 0:
		keys := slices.Clone(s.Keys)
		out.ShardKeys = func(context.Context, *jobs.Run) ([]string, error) { return slices.Clone(keys), nil }
		out.ShardsBy = shortened(strings.Join(keys, ", "))
	default:
		out.ShardKeys, err = kinds.ShardKeys{Text: s.Text, Args: s.Args, Database: h.database(s.Database)}.Func()
		out.ShardsBy = shortened(s.words())
	}
	return err
}

// words is the statement in one line, with its arguments as they are written.
func (s *Shards) words() string {
	text := strings.Join(strings.Fields(s.Text), " ")
	if len(s.Args) > 0 {
		text += fmt.Sprintf(" %v", s.Args)
	}
	if s.Database != "pawl" {
		text += " in " + s.Database
	}
	return text
}

// shortened is a text as a definition holds it: a sum tells when what is left out has changed.
func shortened(text string) string {
	text = strings.ReplaceAll(text, "\x00", "")
	const most = 300
	if len(text) <= most {
		return text
	}
	return fmt.Sprintf("%s … (%d bytes, sum %08x)", strings.ToValidUTF8(text[:most], ""), len(text), crc32.ChecksumIEEE([]byte(text)))
}

func (s *Reduce) load() (jobs.Reduce, error) {
	return kinds.Reduce{Text: s.Text, Args: s.Args, Expect: kinds.Rows(s.Expect.Rows)}.Func()
}
