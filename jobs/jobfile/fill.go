package jobfile

import (
	"reflect"
	"strconv"
)

// index returns the path of a job.
func index(i int) string { return "jobs[" + strconv.Itoa(i) + "]" }

// fillFile sets what the file doesn't say: from its defaults, else from the format's.
func (r *reader) fillFile(f *File) {
	none := reflect.Value{}
	r.fill(reflect.ValueOf(f).Elem(), "", none, "")
	for name, c := range f.Channels {
		r.fill(reflect.ValueOf(&c).Elem(), join("channels", name), none, "")
		f.Channels[name] = c
	}
	for i := range f.Jobs {
		job := reflect.ValueOf(&f.Jobs[i]).Elem()
		r.fill(job, index(i), reflect.ValueOf(f.Defaults), "defaults")
	}
}

// fill sets the fields of v that weren't written at path: to those of defaults that were
// written at its own path, else to the format's default.
func (r *reader) fill(v reflect.Value, path string, defaults reflect.Value, from string) {
	for _, f := range r.fieldsOf(v.Type()) {
		at, own := join(path, f.name), v.Field(f.index)
		source, sourcePath := r.named(defaults, f.name), join(from, f.name)
		switch {
		case f.typ == reflect.TypeFor[Defaults]():
		case own.Kind() == reflect.Pointer && !own.IsNil():
			r.fill(own.Elem(), at, reflect.Value{}, "")
		case own.Kind() == reflect.Struct && f.typ != textType && f.typ != rowsType:
			r.fill(own, at, source, sourcePath)
		case r.written(at):
		case source.IsValid() && r.written(sourcePath):
			own.Set(source)
		case f.def != "":
			setDefault(own, f)
		}
	}
}

// named returns the field of the struct v that has that name, if there is one.
func (r *reader) named(v reflect.Value, name string) reflect.Value {
	if v.IsValid() {
		for _, f := range r.fieldsOf(v.Type()) {
			if f.name == name {
				return v.Field(f.index)
			}
		}
	}
	return reflect.Value{}
}

// setDefault sets v to its default in the format.
func setDefault(v reflect.Value, f field) {
	r := newReader()
	n, err := readYAML(f.def)
	if err == nil {
		r.read(v, n, f.name, f)
	}
	if err != nil || len(r.issues) > 0 {
		panic("jobfile: the default of " + f.name + " can't be read") // a test reads them all
	}
}
