package jobfile

import (
	"errors"
	"io/fs"
	"path/filepath"
	"reflect"
	"strings"
	"unicode/utf8"
)

// mostText is the size of the largest job file.
const mostText = 1 << 20

// Parse reads a job file and returns it with all that there is to say about it, in the
// order of the file. name stands in the issues; files that it names are looked for beside
// it. env gives the values of ${env:X}; with nil no secret is resolved and no ${file:…} is
// read, so that a file can be checked where its secrets aren't.
//
// The file is nil when it isn't YAML or no map. Else it has every job, also those with an
// error, and every channel, which are Broken; fields that could not be read have their zero value there.
func Parse(name string, source []byte, env func(string) string) (*File, []Issue) {
	r := newReader()
	r.file, r.dir, r.env = name, filepath.Dir(name), env
	root, err := r.open(source)
	if err != nil {
		var e *placedError
		if errors.As(err, &e) {
			r.issues = []Issue{{File: name, Line: e.at.line, Col: e.at.col, Text: e.text, Severity: Error}}
		}
		return nil, r.issues
	}
	r.root = root
	r.findNames()
	f := &File{name: name}
	r.readStruct(reflect.ValueOf(f).Elem(), root, "")
	r.fillFile(f)
	r.check(f)
	for i := range f.Jobs {
		f.Jobs[i].Broken = r.broken[index(i)]
		f.Jobs[i].at = r.where(index(i) + ".schedule").value
	}
	for name, c := range f.Channels {
		c.Broken = r.broken[join("channels", name)]
		f.Channels[name] = c
	}
	sortIssues(r.issues)
	return f, r.issues
}

// open returns the root of the file's tree.
func (r *reader) open(source []byte) (*node, error) {
	source = []byte(strings.TrimPrefix(string(source), "\ufeff"))
	switch {
	case len(source) > mostText:
		return nil, refuse(mark{1, 1}, "is larger than 1 MiB. Split it: one file an app.")
	case !utf8.Valid(source):
		line := 1 + strings.Count(string(source[:invalid(source)]), "\n")
		return nil, refuse(mark{line, 1}, "this line is not UTF-8. Save the file as UTF-8.")
	}
	root, err := readYAML(string(source))
	switch {
	case err != nil:
		return nil, err
	case root.kind == null:
		return nil, refuse(mark{1, 1}, "is empty. Write version: 1 and jobs:, or let pawl init write a file to start from.")
	case root.kind != mapping:
		return nil, refuse(root.at, "is %s, where a map is wanted. Begin with version: 1.", root.kind)
	}
	return root, nil
}

// invalid returns the offset of the first byte that is not UTF-8.
func invalid(source []byte) int {
	at := 0
	for at < len(source) {
		c, size := utf8.DecodeRune(source[at:])
		if c == utf8.RuneError && size == 1 {
			break
		}
		at += size
	}
	return at
}

// findNames notes the names of each job's params, which its templates may use, and whether it has shards.
func (r *reader) findNames() {
	jobs := r.root.get("jobs")
	if jobs == nil {
		return
	}
	for i, job := range jobs.items {
		r.shards[index(i)] = job.get("shards") != nil
		if params := job.get("params"); params != nil {
			for _, e := range params.entries {
				r.params[index(i)] = append(r.params[index(i)], e.key)
			}
		}
	}
}

// cause is why a file can't be read, without its path.
func cause(err error) string {
	var e *fs.PathError
	if errors.As(err, &e) {
		return e.Err.Error()
	}
	return err.Error()
}
