package jobfile

import (
	"cmp"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// reader reads one file. A field's path is like "jobs[2].sql.args[0]"; people are shown
// the job's name in place of jobs[2].
type reader struct {
	file, dir string
	env       func(string) string
	root      *node
	issues    []Issue
	broken    map[string]bool     // the jobs[i] and channels.NAME in which there is an error
	places    map[string]place    // of every path that was written
	params    map[string][]string // declared by each jobs[i]
	shards    map[string]bool     // the jobs[i] that have shards
	types     map[reflect.Type][]field
}

// newReader returns a reader that has read nothing.
func newReader() *reader {
	return &reader{
		broken: map[string]bool{}, params: map[string][]string{}, shards: map[string]bool{}, types: map[reflect.Type][]field{},
		places: map[string]place{"": {mark{1, 1}, mark{1, 1}}},
	}
}

// fieldsOf is the function of that name, which is slow.
func (r *reader) fieldsOf(t reflect.Type) []field {
	if _, known := r.types[t]; !known {
		r.types[t] = fieldsOf(t)
	}
	return r.types[t]
}

// place is where a field stands: its key (or list item) and its value.
type place struct{ key, value mark }

// written reports whether the file says something at path.
func (r *reader) written(path string) bool { _, ok := r.places[path]; return ok }

// bad reports an error at the value of path, or of what it would be in.
func (r *reader) bad(path, format string, args ...any) {
	r.say(Error, r.where(path).value, path, fmt.Sprintf(format, args...))
}

// warn reports a warning or a note at the value of path.
func (r *reader) warn(s Severity, path, format string, args ...any) {
	r.say(s, r.where(path).value, path, fmt.Sprintf(format, args...))
}

func (r *reader) where(path string) place {
	for {
		if p, ok := r.places[path]; ok || path == "" {
			return p
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
}

// say adds an issue, whose text follows the shown path and a colon.
func (r *reader) say(s Severity, at mark, path, text string) {
	shown, job := r.show(path)
	channel := r.channelOf(path)
	if shown != "" {
		text = shown + ": " + text
	}
	text = strings.NewReplacer("\n", `\n`, "\r", `\r`).Replace(text) // keys may hold anything
	if s == Error {
		r.broken[cmp.Or(jobOf(path), join("channels", channel))] = true
	}
	r.issues = append(r.issues, Issue{File: r.file, Line: at.line, Col: at.col, Job: job, Channel: channel, Text: text, Severity: s})
}

// jobOf returns the "jobs[2]" that path begins with, or "".
func jobOf(path string) string {
	if rest, ok := strings.CutPrefix(path, "jobs["); ok {
		i, _, _ := strings.Cut(rest, "]")
		return "jobs[" + i + "]"
	}
	return ""
}

// channelOf returns the name of the channel that path is in, or "".
func (r *reader) channelOf(path string) string {
	channels := r.root.get("channels")
	if channels == nil || jobOf(path) != "" {
		return ""
	}
	for _, e := range channels.entries {
		rest, ok := strings.CutPrefix(path, join("channels", e.key))
		if ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return e.key
		}
	}
	return ""
}

// show returns the path as people know it, and the name of its job.
func (r *reader) show(path string) (shown, job string) {
	prefix := jobOf(path)
	i, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(prefix, "jobs["), "]"))
	if prefix == "" || err != nil {
		return path, ""
	}
	if n := r.root.get("jobs").items[i].get("name"); n != nil && n.kind == text && n.text != "" {
		return n.text + path[len(prefix):], n.text
	}
	return path, ""
}

// join returns the path of a field of path.
func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
