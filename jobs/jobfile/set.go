package jobfile

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"pawl/internal/nearest"
)

// readScalar sets a value that is written as one word, number or text.
func (r *reader) readScalar(v reflect.Value, n *node, path string, f field) {
	problem := ""
	switch {
	case n.kind == null:
		problem = empty(f)
	case n.kind == list || n.kind == mapping:
		problem = fmt.Sprintf("is %s, where one value is wanted.", n.kind)
	case f.typ == textType:
		v.Set(reflect.ValueOf(r.text(n, path, f)))
	default:
		problem = setScalar(v, n, f)
	}
	if problem != "" {
		r.bad(path, "%s", problem)
	}
}

// setScalar sets v to what a scalar says. problem says what is wrong with it, or is "".
func setScalar(v reflect.Value, n *node, f field) (problem string) {
	switch f.typ {
	case durationType:
		return setDuration(v, n, f)
	case sizeType:
		return setSize(v, n, f)
	case rowsType:
		var c Rows
		c, problem = parseRows(n.text)
		v.Set(reflect.ValueOf(c))
		return problem
	case causeType:
		var c Cause
		c, problem = parseCause(n.text)
		v.Set(reflect.ValueOf(c))
		return problem
	}
	switch f.typ.Kind() {
	case reflect.Bool:
		if n.kind != boolean {
			return fmt.Sprintf("%q is neither true nor false.", n.text)
		}
		v.SetBool(strings.EqualFold(n.text, "true"))
	case reflect.Int:
		return setInt(v, n, f)
	default:
		return setString(v, n, f)
	}
	return ""
}

func empty(f field) string {
	if f.required {
		return "is empty. Write a value."
	}
	return "is empty. Write a value, or remove the line."
}

func setDuration(v reflect.Value, n *node, f field) string {
	if f.none && n.text == "none" {
		v.SetInt(int64(NoTimeout))
		return ""
	}
	d, problem := parseDuration(n.text)
	least, _ := parseDuration(f.min)
	most, _ := parseDuration(f.max)
	switch {
	case problem != "":
		return problem
	case f.min != "" && d < least && f.none:
		return fmt.Sprintf("%q is too short. Write %s or more, or none.", n.text, f.min)
	case f.min != "" && d < least:
		return fmt.Sprintf("%q is too short. Write %s or more.", n.text, f.min)
	case f.max != "" && d > most:
		return fmt.Sprintf("%q is too long. Write at most %s.", n.text, f.max)
	}
	v.SetInt(int64(d))
	return ""
}

func setSize(v reflect.Value, n *node, f field) string {
	s, problem := parseSize(n.text)
	least, _ := parseSize(f.min)
	most, _ := parseSize(f.max)
	switch {
	case problem != "":
		return problem
	case f.min != "" && s < least, f.max != "" && s > most:
		return fmt.Sprintf("%q is out of range. Write a size from %s to %s.", n.text, f.min, f.max)
	}
	v.SetInt(int64(s))
	return ""
}

func setInt(v reflect.Value, n *node, f field) string {
	i, err := strconv.Atoi(n.text)
	least, err1 := strconv.Atoi(f.min)
	most, err2 := strconv.Atoi(f.max)
	switch {
	case n.kind != number || err != nil || octal(n.text):
		return fmt.Sprintf("%q is not a whole number.", n.text)
	case err1 == nil && err2 == nil && least == most && i != least:
		return fmt.Sprintf("%d is not %d. Write %[2]d.", i, least)
	case err1 == nil && i < least, err2 == nil && i > most:
		return fmt.Sprintf("%d is out of range. Write a number from %s to %s.", i, f.min, f.max)
	}
	v.SetInt(int64(i))
	return ""
}

func setString(v reflect.Value, n *node, f field) string {
	switch {
	case len(f.enum) > 0 && !slices.Contains(f.enum, n.text):
		hint := nearest.DidYouMean(n.text, f.enum)
		if hint == "" {
			hint = " Write " + strings.Join(f.enum, " | ") + "."
		}
		return fmt.Sprintf("%q is not a choice.%s", n.text, hint)
	case n.kind != text:
		return fmt.Sprintf("%s is %s, where text is wanted. Put it in quotes.", n.text, n.kind)
	case n.text == "":
		return empty(f)
	case !f.raw && strings.Contains(n.text, "{{"):
		return "a template can't be used here. Write the value itself."
	case !f.raw && opening.MatchString(n.text):
		return "a secret can't be used here. Write the value itself."
	}
	v.SetString(n.text)
	return ""
}
