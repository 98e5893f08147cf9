package ui_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// What the policy would block, or what leads out of the base path, isn't written in the first place.
var forbidden = map[string]*regexp.Regexp{
	"a style that isn't in app.css":         regexp.MustCompile(`(?i)\sstyle\s*=|<style\b`),
	"a handler in an attribute":             regexp.MustCompile(`(?i)[\s"']on[a-z]+\s*=|\bhx-on|javascript:`),
	"a script without a file":               regexp.MustCompile(`(?i)<script(?:>|\s[^>]*>)`),
	"a header in the page":                  regexp.MustCompile(`(?i)http-equiv`),
	"markup that isn't escaped":             regexp.MustCompile(`\|\s*(?:safe|html|js|urlquery)\b`),
	"an address that doesn't pass the base": regexp.MustCompile(`(?i)\b(?:href|src|action|formaction|poster|srcset|data|data-hx-(?:get|post|put|patch|delete))=("(?:\{\{[^}]*\}\}|[^"])*"|'[^']*'|[^\s>"']+)`),
}

// based is an address that a function has made, or a place on the same page.
var based = regexp.MustCompile(`^"(?:#[\w-]*(?:"|\{\{)|(?:\{\{if [^}]*\}\}(?:#[\w-]+\{\{else\}\})?)?\{\{\$?\.(?:Page\.)?(?:Base|Static|Self|URL|With|Next|Query)\b)`)

// srced is a script that is one of our files.
var srced = regexp.MustCompile(`^<script src="\{\{\.Static\}\}/[\w.-]+" defer>$`)

func TestTemplatesHaveNoStyleNoHandlerNoScriptAndNoAddressOfTheirOwn(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("templates/*.html")
	if err != nil || len(files) < 8 {
		t.Fatalf("templates %q: %v", files, err)
	}
	addresses := 0
	for _, file := range append(files, filepath.Join("..", "templates", "docs.html")) {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for n, line := range strings.Split(string(b), "\n") {
			wrong, seen := faults(line)
			addresses += seen
			for _, w := range wrong {
				t.Errorf("%s:%d: %s", file, n+1, w)
			}
		}
	}
	if addresses < 40 {
		t.Errorf("%d addresses were seen: is the pattern right?", addresses)
	}
}

// faults are what is wrong with a line of a template, and how many addresses it has.
func faults(line string) (wrong []string, addresses int) {
	for what, pattern := range forbidden {
		for _, m := range pattern.FindAllStringSubmatch(line, -1) {
			if len(m) > 1 {
				addresses++
			}
			if srced.MatchString(m[0]) || len(m) > 1 && based.MatchString(m[1]) {
				continue
			}
			wrong = append(wrong, what+": "+m[0])
		}
	}
	if strings.Contains(strings.ReplaceAll(line, "http://www.w3.org/2000/svg", ""), "://") {
		wrong = append(wrong, "an address elsewhere: "+line)
	}
	return wrong, addresses
}

func TestTheTemplatesAreReadAsABrowserReadsThem(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{
		`<p style="color:red">`, `<style>p{}</style>`, `<a onclick="x()">`, `<img onerror=x>`, `<script>x()</script>`, `<script src="/app.js"></script>`,
		`<a href="/ui/locks">`, `<form action="/ui/keys">`, `<a href="{{.Href}}">`, `<a href='/x'>`, `<a href=/x>`, `<img src="https://example.com/x">`,
		`<main data-hx-get="/ui/locks">`, `<a href="javascript:x()">`, `{{.Name | safe}}`,
	} {
		if wrong, _ := faults(bad); len(wrong) == 0 {
			t.Errorf("nothing is wrong with %s", bad)
		}
	}
	for _, good := range []string{
		`<a href="{{.Base}}/ui/locks">`, `<a href="{{$.URL "ui" "locks" .Lock}}?lock={{.Lock}}">`, `<a href="#main">`, `<form action="{{.Self}}">`,
		`<script src="{{.Static}}/app.js" defer></script>`, `<a href="{{if .X}}{{$.Base}}/x{{end}}">`, `<rect width="6" class="one"/>`,
	} {
		if wrong, _ := faults(good); len(wrong) > 0 {
			t.Errorf("%s: %q", good, wrong)
		}
	}
}

// What a Go file writes itself is escaped by html/template, unless somebody says that it needn't be.
func TestOnlyTokensAreWrittenWithoutEscaping(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	raw := regexp.MustCompile(`template\.(?:HTML|JS|CSS|URL|HTMLAttr|Srcset|JSStr)\(`)
	var found []string
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for line := range strings.Lines(string(b)) {
			if raw.MatchString(line) {
				found = append(found, file+": "+strings.TrimSpace(line))
			}
		}
	}
	if len(found) != 1 || !strings.Contains(found[0], "fence.FormatSeq(n)") {
		t.Errorf("unescaped: %q, want a token's digits alone", found)
	}
}
