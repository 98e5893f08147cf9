package jobfile

import (
	"fmt"
	"slices"
	"strings"
)

// Text is a value that may hold templates, {{period.key}}, and secrets, ${env:X} and
// ${file:…}. Printing, logging or marshalling it shows what was written; only [Text.Expand]
// gives the secrets' values. The zero Text is empty.
type Text struct {
	source string
	parts  []part
	faulty bool // an issue tells why
}

// part is a piece of a Text: literal, or a template, or a secret.
type part struct {
	literal string
	value   string        // the template's name
	written string        // the secret, as it stands in the file
	secret  func() string // a func, so that no printer reaches its result
}

// more are the names besides that a template may have in a field whose tag text is that.
func more(text string) []string {
	return map[string][]string{"probe": {"effect.key"}, "window": {"from", "to"}}[text]
}

// values are the names that a template may have, besides params.NAME.
func values() []string {
	return []string{
		"period.key", "period.start", "period.end", "period.offset", "scheduled_at",
		"run.id", "run.attempt", "run.revision",
	}
}

// shardValues are those of a shard's run.
func shardValues() []string { return []string{"shard.key", "shard.index", "shard.count"} }

// String returns the text as it was written, without any secret's value.
func (t Text) String() string { return t.source }

// GoString is String in quotes, so that no printing verb reaches further.
func (t Text) GoString() string { return fmt.Sprintf("%q", t.source) }

// MarshalText returns String.
func (t Text) MarshalText() ([]byte, error) { return []byte(t.source), nil }

// IsZero reports whether nothing was written.
func (t Text) IsZero() bool { return t.source == "" }

// Values returns the names of the templates in the text, in their order.
func (t Text) Values() []string {
	var names []string
	for _, p := range t.parts {
		if p.value != "" {
			names = append(names, p.value)
		}
	}
	return names
}

// Only returns the name of the template that is the whole text, or "": its value may
// then be passed on with its type.
func (t Text) Only() string {
	if len(t.parts) == 1 {
		return t.parts[0].value
	}
	return ""
}

// HasSecret reports whether a secret is in the text.
func (t Text) HasSecret() bool {
	return slices.ContainsFunc(t.parts, func(p part) bool { return p.secret != nil })
}

// Expand returns the text with its secrets and with value's answer for each template's
// name. Where the file was read without an environment, secrets stay as they are written.
func (t Text) Expand(value func(name string) string) string {
	var b strings.Builder
	for _, p := range t.parts {
		switch {
		case p.secret != nil:
			b.WriteString(p.secret())
		case p.value != "":
			b.WriteString(value(p.value))
		default:
			b.WriteString(p.literal)
		}
	}
	return b.String()
}

// Show returns the text with value's answer for each template's name, and its secrets as they are written.
func (t Text) Show(value func(name string) string) string {
	var b strings.Builder
	for _, p := range t.parts {
		switch {
		case p.secret != nil:
			b.WriteString(p.written)
		case p.value != "":
			b.WriteString(value(p.value))
		default:
			b.WriteString(p.literal)
		}
	}
	return b.String()
}

// literal returns what stands in the text itself.
func (t Text) literal() string {
	var b strings.Builder
	for _, p := range t.parts {
		b.WriteString(p.literal)
	}
	return b.String()
}
