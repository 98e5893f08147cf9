package jobfile_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"strings"
	"testing"

	"pawl/jobs/jobfile"
)

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// argv returns the one argument of a command, as it was parsed.
func argv(t *testing.T, source string) jobfile.Text {
	t.Helper()
	quoted, err := json.Marshal(source)
	if err != nil {
		t.Fatal(err)
	}
	f, issues := jobfile.Parse("pawl.yaml", []byte(`
version: 1
jobs:
  - name: a
    kind: command
    schedule: "@daily"
    params: {mode: {type: string, default: full}}
    command: {argv: [x, `+string(quoted)+`]}
`), fakeEnv)
	if texts := errors(issues); len(texts) > 0 {
		t.Fatalf("%q: %s", source, texts)
	}
	return f.Jobs[0].Command.Argv[1]
}

func TestTemplatesAndSecretsAreReplacedOnly(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		"":                                      "",
		"plain":                                 "plain",
		"{{period.key}}":                        "PERIOD.KEY",
		"day={{ period.key }}/{{params.mode}}.": "day=PERIOD.KEY/PARAMS.MODE.",
		"${env:FINE_X}":                         secretValue,
		"a${env:FINE_X}b{{run.id}}":             "a" + secretValue + "bRUN.ID",
		"{{{{.Names}}":                          "{{.Names}}",
		"$${env:FINE_X}":                        "${env:FINE_X}",
		"$${file:x} $$ ${HOME} $HOME }}":        "${file:x} $$ ${HOME} $HOME }}",
		"{{{{period.key}} {{period.key}}":       "{{period.key}} PERIOD.KEY",
	} {
		got := argv(t, source)
		if got.Expand(strings.ToUpper) != want || got.String() != source {
			t.Errorf("%q expands to %q and prints as %q, want %q and itself", source, got.Expand(strings.ToUpper), got, want)
		}
	}
}

// TestValuesAreNotExpandedAgain keeps a param from reaching a secret or another value.
func TestWhatIsShownHasSecretsAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	got := argv(t, "$${env:A} {{{{ ${env:FINE_X}/{{period.key}}").Show(strings.ToUpper)
	if want := "${env:A} {{ ${env:FINE_X}/PERIOD.KEY"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestValuesAreNotExpandedAgain(t *testing.T) {
	t.Parallel()
	evil := func(string) string { return "${env:FINE_X}{{run.id}}" }
	if got := argv(t, "{{params.mode}}").Expand(evil); got != evil("") {
		t.Errorf("a value was expanded: %q", got)
	}
}

func TestATextTellsWhatItHolds(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		source string
		values []string
		only   string
		secret bool
	}{
		{"x", nil, "", false},
		{"{{period.start}}", []string{"period.start"}, "period.start", false},
		{"{{period.start}}!{{run.id}}", []string{"period.start", "run.id"}, "", false},
		{"${env:FINE_A}", nil, "", true},
	} {
		got := argv(t, test.source)
		if !reflect.DeepEqual(got.Values(), test.values) || got.Only() != test.only || got.HasSecret() != test.secret {
			t.Errorf("%q: %v, %q, %v", test.source, got.Values(), got.Only(), got.HasSecret())
		}
	}
}

func TestTemplatesAreTextsWhereverTheyStandInATree(t *testing.T) {
	t.Parallel()
	f, _ := parse(t, "testdata/ok/complete.yaml")
	expanded := func(v any) string { return v.(jobfile.Text).Expand(strings.ToUpper) }
	var body map[string]any
	for _, job := range f.Jobs {
		if job.Name == "notify" {
			body = job.HTTP.Body.JSON.(map[string]any)
		}
	}
	list := body["list"].([]any)
	deep := list[len(list)-1].(map[string]any)["deep"]
	args := f.Jobs[0].SQL.Args
	for i, want := range []string{"PERIOD.KEY", "SCHEDULED_AT", "PERIOD.START", "PARAMS.MODE"} {
		if got := expanded([]any{body["day"], deep, args[0], args[1]}[i]); got != want {
			t.Errorf("text %d is %q, want %q", i, got, want)
		}
	}
	if want := []any{int64(5), 0.5, true, nil}; !reflect.DeepEqual(args[2:], want) || !reflect.DeepEqual(list[2:4], []any{true, nil}) {
		t.Errorf("values are %#v and %#v", args[2:], list)
	}
}

// TestSecretsAreNotPrinted prints a whole file in every way that a program might.
func TestSecretsAreNotPrinted(t *testing.T) {
	t.Parallel()
	f, _ := parse(t, "testdata/ok/complete.yaml")
	if got := f.Databases["warehouse"].URL.Expand(nil); got != secretValue {
		t.Fatalf("the secret is %q, want %q", got, secretValue)
	}
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		fmt.Fprintf(&out, verb, *f)
		for _, job := range f.Jobs {
			fmt.Fprintf(&out, verb+verb+verb, job.SQL, job.Command, job.HTTP)
		}
		fmt.Fprintf(&out, verb, f.Jobs[2].Command.Env)
		fmt.Fprintf(&out, verb, f.Jobs[2].Command.Env["DB"])
	}
	encoded, err := json.Marshal(f.Jobs[2].Command)
	if err != nil {
		t.Fatal(err)
	}
	out.Write(encoded)
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "text", f.Jobs[2].Command.Env["DB"], "env", f.Jobs[2].Command.Env)
	slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "text", f.Jobs[2].Command.Env["DB"], "env", f.Jobs[2].Command.Env)
	if strings.Contains(out.String(), secretValue) {
		t.Errorf("a secret was printed in\n%s", out.String())
	}
	if !strings.Contains(out.String(), "${env:FINE_DSN}") {
		t.Errorf("the text as written was not printed in\n%s", out.String())
	}
}

// TestAFileCanBeCheckedWithoutItsSecrets is what pawl lint does in CI.
func TestAFileCanBeCheckedWithoutItsSecrets(t *testing.T) {
	t.Parallel()
	f, issues := text(`
version: 1
databases: {a: {url: "${env:NOT_HERE}"}, b: {url: "${file:/not/here}"}}
jobs: [{name: a, kind: go, schedule: "@manual", owner: x, go: {}}]
`)
	if len(issues) > 0 {
		t.Fatal(jobfile.Lines(issues))
	}
	if got := f.Databases["a"].URL.Expand(nil); got != "${env:NOT_HERE}" {
		t.Errorf("unresolved, it expands to %q", got)
	}
}
