package lockrepo

import (
	"strconv"
	"strings"
	"time"
)

// walk is a page of a table with ids, the newest first, along an index whose
// columns before the id have given values. It compares them and the id as one
// row, from here to there: with an equality the planner might walk along the
// ids alone, through all the rows that don't match.
type walk struct {
	table string
	cols  []string // the index's columns before the id
	vals  []string // and their values in the statement
	conds []string // what else must be true
	args  []any
	from  string // the lowest id in question
	to    string // and what is above the highest
}

const maxID = "9223372036854775807"

func newWalk(table string, before int64) *walk {
	w := &walk{table: table, from: "0", to: maxID}
	if before > 0 {
		w.to = w.arg(before, "bigint")
	}
	return w
}

// arg is how the statement says v.
func (w *walk) arg(v any, as string) string {
	w.args = append(w.args, v)
	return "$" + strconv.Itoa(len(w.args)) + "::" + as
}

// text makes col the next column of the index, if it may still be, or else a
// condition; an empty v says nothing.
func (w *walk) text(col, v string) {
	switch {
	case v == "":
	case len(w.cols) == 0:
		w.cols, w.vals = []string{col}, []string{w.arg(v, "text")}
	default:
		w.conds = append(w.conds, col+" = "+w.arg(v, "text"))
	}
}

// between bounds the time and, a little wider, the ids: these are given out in the order of time, but for transactions that meet.
func (w *walk) between(from, to time.Time) {
	if !from.IsZero() {
		at := w.arg(from, "timestamptz")
		w.conds = append(w.conds, "at >= "+at)
		w.from = "coalesce((select f.id from " + w.table + " f where f.at >= " + at + " - interval '10 s' order by f.at limit 1), " + maxID + ")"
	}
	if !to.IsZero() {
		at := w.arg(to, "timestamptz")
		w.conds = append(w.conds, "at < "+at)
		w.to = "least(" + w.to + ", 1 + coalesce((select f.id from " + w.table + " f where f.at < " + at + " + interval '10 s' order by f.at desc limit 1), 0))"
	}
}

// sql is the rest of a statement that has said what to select from the table.
func (w *walk) sql(limit string) string {
	row := func(names []string, id string) string {
		return "(" + strings.Join(append(names[:len(names):len(names)], id), ", ") + ")"
	}
	conds := append([]string{
		row(w.cols, "id") + " >= " + row(w.vals, w.from),
		row(w.cols, "id") + " < " + row(w.vals, w.to),
	}, w.conds...)
	order := ""
	for _, c := range w.cols {
		order += c + " desc, "
	}
	return "\n where " + strings.Join(conds, "\n   and ") + "\n order by " + order + "id desc limit " + limit
}

// checkTexts makes sure that the database takes each value: name, value, ….
func checkTexts(pairs ...string) error {
	for i := 0; i < len(pairs); i += 2 {
		if !isText(pairs[i+1]) {
			return badInput("%s %q is not UTF-8 text: remove the bytes that are not", pairs[i], pairs[i+1])
		}
	}
	return nil
}
