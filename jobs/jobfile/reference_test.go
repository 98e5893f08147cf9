package jobfile

import (
	"fmt"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

const (
	referencePath  = "../../docs/jobfile.md"
	referenceBegin = "<!-- fields: made from the structs by the test of jobs/jobfile -->\n"
	referenceEnd   = "<!-- end of fields -->\n"
)

// TestTheReferenceHasEveryField compares docs/jobfile.md with the structs.
func TestTheReferenceHasEveryField(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile(referencePath)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(b), referenceBegin)
	_, after, found2 := strings.Cut(rest, referenceEnd)
	if !found || !found2 {
		t.Fatal("docs/jobfile.md has lost the comments around its fields")
	}
	page := before + referenceBegin + reference() + referenceEnd + after
	if page == string(b) {
		return
	}
	if !updating() {
		t.Fatal("docs/jobfile.md differs from the structs; go test -update writes it anew")
	}
	if err := os.WriteFile(referencePath, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestTheReferencesExamplesAreRight parses each YAML block of docs/jobfile.md, and the jobs of docs/shards.md.
func TestTheReferencesExamplesAreRight(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile(referencePath)
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(b), "```yaml\n")[1:]
	if len(blocks) < 3 {
		t.Fatalf("docs/jobfile.md has %d examples", len(blocks))
	}
	page, err := os.ReadFile("../../docs/shards.md")
	if err != nil {
		t.Fatal(err)
	}
	_, whole, found := strings.Cut(string(page), "```yaml\njobs:\n")
	if !found {
		t.Fatal("docs/shards.md has no jobs")
	}
	for i, block := range append(blocks, whole) {
		source, _, _ := strings.Cut(block, "```")
		if !strings.HasPrefix(source, "version:") {
			source = "version: 1\ndefaults: {owner: us, timezone: UTC}\njobs:\n" + source
		}
		if _, issues := Parse("docs/jobfile.md", []byte(source), nil); Worst(issues) > Note {
			t.Errorf("example %d:\n%s%s", i+1, Lines(issues), source)
		}
	}
}

// reference returns the tables of all fields.
func reference() string {
	var b strings.Builder
	for _, typ := range structs() {
		fmt.Fprintf(&b, "\n### %s\n\n| Field | Value | Default | What it says |\n|---|---|---|---|\n", heading(typ))
		for _, f := range fieldsOf(typ) {
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.name, cell(describe(f)), cell(describeDefault(f)), cell(f.doc))
		}
	}
	b.WriteString("\n")
	return b.String()
}

func cell(text string) string { return strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(text) }

// heading names a struct by where it stands in the file.
func heading(typ reflect.Type) string {
	if typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	where := map[string]string{
		"File": "The file", "Channel": "channels.NAME", "Database": "databases.NAME", "Job": "jobs[]", "Need": "needs[]",
		"SQLNeed": "sql.expect", "HTTPNeed": "http.expect", "JSONNeed": "http.expect.json", "Param": "params.NAME",
		"Output": "command.output", "Body": "http.body", "Probe": "http.probe", "ReceiptRows": "reconcile.sql", "ReceiptPages": "reconcile.http", "Compare": "reconcile.compare[]",
	}
	if name, ok := where[typ.Name()]; ok {
		return name
	}
	return strings.ToLower(typ.Name())
}

// describe says what a field's value is.
func describe(f field) string {
	bounds := ""
	switch {
	case f.min != "" && f.min == f.max:
		bounds = ", " + f.min
	case f.min != "" && f.max != "":
		bounds = ", " + f.min + " to " + f.max
	case f.min != "":
		bounds = ", at least " + f.min
	}
	if f.none {
		bounds += ", or `none`"
	}
	switch f.typ {
	case durationType:
		return "duration" + bounds
	case sizeType:
		return "size" + bounds
	case rowsType:
		return "condition"
	case causeType:
		return "status code or `connect`"
	case shardsType:
		return "number, 1 to " + strconv.Itoa(mostShards) + ", list of: text, or map (" + heading(f.typ) + ")"
	case textType:
		return map[string]string{"both": "text with templates and secrets", "secrets": "text with secrets", "probe": "text with templates, `{{effect.key}}` and secrets", "window": "text with templates, `{{from}}`, `{{to}}` and secrets"}[f.text]
	}
	switch f.typ.Kind() {
	case reflect.Slice:
		return "list of: " + describe(f.item())
	case reflect.Map:
		return "map of: " + describe(f.item())
	case reflect.Struct, reflect.Pointer:
		return "map (" + heading(f.typ) + ")"
	case reflect.Interface:
		return map[bool]string{true: "text, number, true or false", false: "anything"}[f.scalar]
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "number" + bounds
	default:
	}
	if len(f.enum) > 0 {
		return "`" + strings.Join(f.enum, "`, `") + "`"
	}
	return "text"
}

func describeDefault(f field) string {
	switch {
	case f.required:
		return "must be written"
	case f.def != "":
		return "`" + f.def + "`"
	case f.unset != "":
		return f.unset
	}
	return "–"
}
