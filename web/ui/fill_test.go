package ui_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"time"
)

// What people may call things. None of it may run, turn the page around, or make it wider than the screen.
const (
	script = `<script>alert("x")</script>`
	around = "\u202egnp.exe\u2069" // right to left, as far as a browser lets it
)

var longest = strings.Repeat("h", 255)

// when is the time that filled rows begin at: that of a bubble of synctest.
var when = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// filled is a row of which everything is there, or, bare, of which nothing is that may be absent.
func filled[T any](n int, bare bool) (row T) {
	fill(reflect.ValueOf(&row).Elem(), "", n, bare)
	return row
}

func fill(v reflect.Value, name string, n int, bare bool) {
	at := when.Add(-time.Duration(n+1) * time.Hour)
	switch x := v.Addr().Interface().(type) {
	case *time.Time:
		*x = at
		return
	case *json.RawMessage:
		*x = json.RawMessage(`{"note": ` + string(must(json.Marshal(script+around))) + `}`)
		return
	case *time.Duration:
		*x = 90 * time.Second
		return
	}
	switch v.Kind() { //nolint:exhaustive // the kinds that rows have
	case reflect.Pointer:
		if !bare {
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem(), name, n, bare)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() || f.Anonymous {
				fill(v.Field(i), f.Name, n, bare)
			}
		}
	case reflect.Slice:
		if !bare {
			v.Set(reflect.MakeSlice(v.Type(), 2, 2))
			fill(v.Index(0), name, n, false)
			fill(v.Index(1), name, n+1, true)
		}
	case reflect.String:
		v.SetString(called(name, bare))
	case reflect.Bool:
		v.SetBool(!bare)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32:
		v.SetInt(int64(n + 1))
	case reflect.Int64: // tokens, counts, seconds
		v.SetInt(1795969942676573 + int64(n))
		if strings.HasSuffix(v.Type().Name(), "Seconds") {
			v.SetInt(int64(112 * time.Second))
		}
	case reflect.Float64:
		v.SetFloat(1.5)
	case reflect.Array: // a UUID
		v.Index(v.Len() - 1).SetUint(uint64(n + 1))
	}
}

// called is a string for a field of that name.
func called(name string, bare bool) string {
	switch name {
	case "Zone":
		return "Europe/Paris"
	case "Role":
		return "reader"
	case "Holder", "SuccessorHolder", "RequestedBy", "PausedBy", "CreatedBy":
		if bare {
			return ""
		}
		return longest
	case "Reason", "Note", "Error", "Target", "Statement", "PauseNote", "Approver", "Prefix", "Key", "Period", "HealthText", "Words":
		if bare {
			return ""
		}
	}
	return script + around
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
