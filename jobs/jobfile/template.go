package jobfile

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"pawl/internal/nearest"
)

// opening matches what begins a template or a secret, and what stands for such a
// beginning: {{{{ is {{, and $${env: is ${env:. Every other ${ is left to the shell.
var opening = regexp.MustCompile(`\{\{\{\{|\{\{|\$\$\{(?i:env|file):|\$\{(?i:env|file):`)

// fault is something wrong at an offset of a text. It shows the piece, never a value.
type fault struct {
	at   int
	text string
}

// texter parses texts: it knows what a text may hold, and resolves secrets.
type texter struct {
	values bool     // templates may be in it
	more   []string // names besides
	params []string // the declared names
	shards bool     // the job has some
	whole  bool     // it is of a run for the whole period
	env    func(string) string
	dir    string // where the paths of secrets start
}

// parse returns the text and all its faults.
func (x texter) parse(source string) (Text, []fault) {
	var faults []fault
	t := Text{source: source}
	literal := func(s string) {
		if n := len(t.parts); n > 0 && t.parts[n-1].literal != "" {
			t.parts[n-1].literal += s
		} else if s != "" {
			t.parts = append(t.parts, part{literal: s})
		}
	}
	at := 0
	for m := opening.FindStringIndex(source); m != nil; m = opening.FindStringIndex(source[at:]) {
		start, end := at+m[0], at+m[1]
		literal(source[at:start])
		switch open := source[start:end]; {
		case open == "{{{{":
			literal("{{")
			at = end
		case open[:2] == "$$":
			literal(open[1:])
			at = end
		default:
			p, size, problem := x.piece(source[start:])
			if problem != "" {
				faults = append(faults, fault{start, problem})
			}
			t.parts, at = append(t.parts, p), start+size
		}
	}
	literal(source[at:])
	return t, faults
}

// piece reads the template or secret that s begins with, and returns its size.
func (x texter) piece(s string) (p part, size int, problem string) {
	if strings.HasPrefix(s, "{{") {
		name, _, found := strings.Cut(s[2:], "}}")
		if !found {
			return p, len(s), `"{{" has no "}}". Close it, or write {{{{ for the two braces themselves.`
		}
		p.value = strings.TrimSpace(name)
		return p, len(name) + 4, x.checkValue(p.value)
	}
	inside, _, found := strings.Cut(s[2:], "}")
	if !found {
		return p, len(s), `a "${" has no "}". Write ${env:NAME} or ${file:PATH}.`
	}
	p.secret, problem = x.secret(inside)
	p.written = s[:len(inside)+3]
	return p, len(inside) + 3, problem
}

// checkValue says what is wrong with the name of a template, or nothing.
func (x texter) checkValue(name string) string {
	param, isParam := strings.CutPrefix(name, "params.")
	isShard := slices.Contains(shardValues(), name)
	switch {
	case !x.values:
		return fmt.Sprintf(`"{{%s}}": a template can't be used here. Write the value itself, or a secret.`, name)
	case isShard && !x.shards:
		return fmt.Sprintf(`"{{%s}}": the job has no shards. Write shards: 16, or shards: [north, south], or leave the template out.`, name)
	case isShard && x.whole:
		return fmt.Sprintf(`"{{%s}}": this runs for the whole period, and in no shard. Leave the template out.`, name)
	case isShard:
		return ""
	case isParam && slices.Contains(x.params, param), slices.Contains(values(), name), slices.Contains(x.more, name):
		return ""
	case isParam:
		return fmt.Sprintf(`"{{%s}}": params.%s is not declared.%s`, name, param, nearest.DidYouMean(param, x.params))
	}
	names := append(values(), x.more...)
	known := append(slices.Clone(names), shardValues()...)
	for _, p := range x.params {
		known = append(known, "params."+p)
	}
	hint := nearest.DidYouMean(name, known)
	if before, _, _ := strings.Cut(name, "."); hint == "" && before == "shard" {
		hint = " Use " + strings.Join(shardValues(), ", ") + "."
	}
	if hint == "" {
		hint = " Use one of " + strings.Join(names, ", ") + ", params.NAME."
	}
	return fmt.Sprintf(`"{{%s}}" is not a value.%s`, name, hint)
}

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// mostSecret is the size of the largest secret file.
const mostSecret = 64 << 10

// secret resolves "env:NAME" or "file:PATH"; without an environment to itself.
func (x texter) secret(inside string) (get func() string, problem string) {
	kind, name, _ := strings.Cut(inside, ":")
	shown := "${" + inside + "}"
	same := func() string { return shown }
	switch {
	case kind != "env" && kind != "file":
		return same, fmt.Sprintf(`%q: write it in small letters, ${%s:…}.`, shown, strings.ToLower(kind))
	case kind == "env" && !envName.MatchString(name):
		return same, fmt.Sprintf(`%q: %q is not the name of an environment variable. Write letters, digits and _.`, shown, name)
	case kind == "file" && name == "":
		return same, fmt.Sprintf(`%q: has no path. Write one like ${file:/run/secrets/x}.`, shown)
	case x.env == nil:
		return same, ""
	}
	value := ""
	if kind == "env" {
		if value = x.env(name); value == "" {
			return same, fmt.Sprintf(`%q: the environment variable %s is not set, or empty. Set it for the server.`, shown, name)
		}
	} else if value, problem = readSecret(x.dir, name); problem != "" {
		return same, fmt.Sprintf("%q: %s", shown, problem)
	}
	return func() string { return value }, ""
}

// readSecret returns a file's text without the line feed at its end.
func readSecret(dir, name string) (value, problem string) {
	if !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return "", "the file can't be read: " + cause(err) + ". Make it readable for the server."
	case !info.Mode().IsRegular() || info.Size() > mostSecret:
		return "", "is not a file of at most 64 KiB. Name a file that holds the secret alone."
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return "", "the file can't be read: " + cause(err) + ". Make it readable for the server."
	}
	if value = strings.TrimRight(string(b), "\r\n"); value == "" {
		return "", "the file is empty. Write the secret into it."
	}
	return value, ""
}
