package jobfile

import (
	"reflect"
	"strings"
	"time"
)

// field is one field of the format, as a struct's tags tell it.
type field struct {
	index    int
	typ      reflect.Type
	name     string
	required bool
	def      string   // its default, in YAML
	unset    string   // in words, what leaving it out means
	enum     []string // of the value, or of each item
	min, max string
	pattern  string
	doc      string
	text     string // what a Text holds: "secrets", "both", or both and what more says
	none     bool   // a duration that may be "none"
	raw      bool   // a string in which templates mean nothing
	scalar   bool   // an any that is no list and no map
	single   bool   // a list that may be written as its only item
}

// fieldsOf returns the fields of a struct that the format has.
func fieldsOf(t reflect.Type) []field {
	var fields []field
	for i := range t.NumField() {
		tag := t.Field(i).Tag
		name, opt, _ := strings.Cut(tag.Get("yaml"), ",")
		if name == "-" || name == "" {
			continue
		}
		fields = append(fields, field{
			index: i, typ: t.Field(i).Type, name: name, required: opt == "required",
			def: tag.Get("default"), unset: tag.Get("unset"), enum: strings.Fields(tag.Get("enum")), min: tag.Get("min"), max: tag.Get("max"),
			pattern: tag.Get("pattern"), doc: tag.Get("doc"), text: tag.Get("text"), none: tag.Get("none") != "",
			raw: tag.Get("raw") != "", scalar: tag.Get("scalar") != "", single: tag.Get("single") != "",
		})
	}
	return fields
}

// names returns the fields' names.
func names(fields []field) []string {
	out := make([]string, len(fields))
	for i, f := range fields {
		out[i] = f.name
	}
	return out
}

// item returns the field as each item of its list or value of its map is.
func (f field) item() field {
	f.typ = f.typ.Elem()
	return f
}

var (
	durationType = reflect.TypeFor[time.Duration]()
	textType     = reflect.TypeFor[Text]()
	sizeType     = reflect.TypeFor[Size]()
	rowsType     = reflect.TypeFor[Rows]()
	causeType    = reflect.TypeFor[Cause]()
	shardsType   = reflect.TypeFor[*Shards]()
)
