package jobfile

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"pawl/internal/nearest"
)

// read sets v to what n says. f is v's field.
func (r *reader) read(v reflect.Value, n *node, path string, f field) {
	if f.typ == shardsType {
		r.readShards(v, n, path)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		if f.typ != textType && f.typ != rowsType {
			r.readStruct(v, n, path)
			return
		}
	case reflect.Pointer:
		p := reflect.New(v.Type().Elem())
		r.readStruct(p.Elem(), n, path)
		v.Set(p)
		return
	case reflect.Slice:
		r.readList(v, n, path, f)
		return
	case reflect.Map:
		r.readMap(v, n, path, f)
		return
	case reflect.Interface:
		if t := r.tree(n, path, f); t != nil {
			v.Set(reflect.ValueOf(t))
		}
		return
	default:
	}
	r.readScalar(v, n, path, f)
}

// readStruct sets the fields of v.
func (r *reader) readStruct(v reflect.Value, n *node, path string) {
	fields := r.fieldsOf(v.Type())
	if n.kind == null {
		n = &node{kind: mapping, at: n.at}
	}
	if n.kind != mapping {
		r.bad(path, "is %s, where a map is wanted.%s", n.kind, known(fields))
		return
	}
	r.checkKeys(n, path)
	for _, e := range n.entries {
		if !slices.Contains(names(fields), e.key) {
			hint := nearest.DidYouMean(e.key, names(fields))
			if hint == "" {
				hint = known(fields)
			}
			r.say(Error, e.at, path, fmt.Sprintf("unknown key %q.%s", e.key, hint))
		}
	}
	for _, f := range fields {
		i := slices.IndexFunc(n.entries, func(e entry) bool { return e.key == f.name })
		switch {
		case i >= 0:
			e := n.entries[i]
			r.places[join(path, f.name)] = place{e.at, e.value.at}
			r.read(v.Field(f.index), e.value, join(path, f.name), f)
		case f.required:
			r.missing(path, f)
		}
	}
}

// known lists the keys of a map, when they are few.
func known(fields []field) string {
	if len(fields) > 12 {
		return ""
	}
	return " Its keys are " + strings.Join(names(fields), ", ") + "."
}

func (r *reader) missing(path string, f field) {
	hint := "Write " + f.name + ": and its value"
	if len(f.enum) > 0 {
		hint = "Write " + f.name + ": " + strings.Join(f.enum, " | ")
	}
	if f.min != "" && f.min == f.max {
		hint = "Write " + f.name + ": " + f.min
	}
	r.bad(path, "%s is missing. %s.", f.name, hint)
}

// checkKeys reports keys that are there twice.
func (r *reader) checkKeys(n *node, path string) {
	first := map[string]mark{}
	for _, e := range n.entries {
		if at, twice := first[e.key]; twice {
			r.say(Error, e.at, path, fmt.Sprintf("key %q is used twice (first at line %d).", e.key, at.line))
			continue
		}
		first[e.key] = e.at
	}
}

// readList sets the items of a list.
func (r *reader) readList(v reflect.Value, n *node, path string, f field) {
	items := n.items
	switch {
	case n.kind == list || n.kind == null:
	case f.single && (n.kind != mapping) != (v.Type().Elem().Kind() == reflect.Struct && v.Type().Elem() != textType):
		items = []*node{n}
	default:
		r.bad(path, "is %s, where a list is wanted. Write [a, b].", n.kind)
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(items), len(items)))
	for i, item := range items {
		p := fmt.Sprintf("%s[%d]", path, i)
		r.places[p] = place{item.at, item.at}
		r.read(v.Index(i), item, p, f.item())
	}
}

// readMap sets the values of a map whose keys are words or numbers.
func (r *reader) readMap(v reflect.Value, n *node, path string, f field) {
	if n.kind != mapping {
		if n.kind != null {
			r.bad(path, "is %s, where a map is wanted. Write {name: value}.", n.kind)
		}
		return
	}
	r.checkKeys(n, path)
	v.Set(reflect.MakeMap(v.Type()))
	for _, e := range n.entries {
		p := join(path, e.key)
		r.places[p] = place{e.at, e.value.at}
		key := reflect.ValueOf(e.key)
		if v.Type().Key().Kind() == reflect.Int {
			i, err := strconv.Atoi(e.key)
			if err != nil {
				r.say(Error, e.at, path, fmt.Sprintf("key %q is not a number.", e.key))
				continue
			}
			key = reflect.ValueOf(i)
		}
		item := reflect.New(v.Type().Elem()).Elem()
		r.read(item, e.value, p, f.item())
		v.SetMapIndex(key, item)
	}
}

// tree returns n as text, int64, float64, bool, nil, []any or map[string]any. Where f
// allows templates, texts are Text.
func (r *reader) tree(n *node, path string, f field) any {
	switch n.kind {
	case null:
		return nil
	case list, mapping:
		if f.scalar {
			r.bad(path, "is %s, where one value is wanted.", n.kind)
			return nil
		}
	case boolean:
		return strings.EqualFold(n.text, "true")
	case number:
		return r.number(n, path)
	case text:
		if f.text == "" {
			return n.text
		}
		return r.text(n, path, f)
	}
	if n.kind == list {
		items := make([]any, len(n.items))
		for i, item := range n.items {
			p := fmt.Sprintf("%s[%d]", path, i)
			r.places[p] = place{item.at, item.at}
			items[i] = r.tree(item, p, f)
		}
		return items
	}
	r.checkKeys(n, path)
	m := make(map[string]any, len(n.entries))
	for _, e := range n.entries {
		r.places[join(path, e.key)] = place{e.at, e.value.at}
		m[e.key] = r.tree(e.value, join(path, e.key), f)
	}
	return m
}

// number returns an int64 or float64.
func (r *reader) number(n *node, path string) any {
	if i, err := strconv.ParseInt(n.text, 10, 64); err == nil && !octal(n.text) {
		return i
	}
	x, err := strconv.ParseFloat(n.text, 64)
	if err != nil || x-x != 0 || octal(n.text) {
		r.bad(path, "%s is not a plain decimal number. Write digits, or put it in quotes to make it text.", n.text)
		return nil
	}
	return x
}

// octal reports a leading zero, which YAML's versions read differently.
func octal(text string) bool {
	digits := strings.TrimLeft(text, "+-")
	return len(digits) > 1 && digits[0] == '0' && digits[1] != '.'
}

// text returns n's text with its templates and secrets parsed.
func (r *reader) text(n *node, path string, f field) Text {
	x := texter{
		values: f.text == "both" || len(more(f.text)) > 0, more: more(f.text), params: r.params[jobOf(path)], shards: r.shards[jobOf(path)], whole: ofWhole(path),
		env: r.env, dir: r.dir,
	}
	t, faults := x.parse(n.text)
	t.faulty = len(faults) > 0
	for _, fault := range faults {
		at := n.at
		if n.first > 0 {
			at.col = n.first + len([]rune(n.text[:fault.at]))
		}
		r.say(Error, at, path, fault.text)
	}
	return t
}
