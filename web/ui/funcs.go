package ui

import (
	"html/template"
	"maps"
	"strings"
)

// onPage is a piece of a page's data with the page, for templates within templates.
type onPage struct {
	Page *page
	Data any
}

// pieces are the functions that only templates need.
func pieces() template.FuncMap {
	return template.FuncMap{
		"on":          func(p *page, data any) onPage { return onPage{p, data} },
		"marks":       marks,
		"told":        told,
		"healthclass": healthClass,
		"runclass":    runClass,
		"periodclass": periodClass,
		"eventclass":  eventClass,
		"cellclass":   cellClass,
		"calendarof":  calendarOf,
		"astext":      asText,
		"took":        took,
		"done":        done,
		"eventtext":   eventText,
		"words":       func(state string) string { return strings.ReplaceAll(state, "_", " ") },
		"brief":       brief,
		"count":       func(n *int64) string { return comma(*n) },
		"share":       shareOf,
		"effectclass": effectClass,
		"undecided":   undecided,
		"decidable":   decidable,
		"kindtext":    kindText,
		"ourstext":    oursText,
		"theirstext":  theirsText,
		"advicetext":  adviceText,
		"messagetext": messageText,
		"behindtext":  behindText,
		"bytes":       bytesOf,
		"hashshort":   hashShort,
	}
}

func allFunctions() template.FuncMap {
	all := functions()
	maps.Copy(all, pieces())
	return all
}

// brief is the first line that says something, or its beginning: a panic's stack comes after it.
func brief(s string) string {
	const most = 200
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	s = strings.TrimSpace(s)
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

// shareOf is how much of the work is done, in percent; 0: it can't be said.
func shareOf(done, total *int64) float64 {
	if done == nil || total == nil || *total <= 0 {
		return 0
	}
	return percent(float64(*done), float64(*total))
}
