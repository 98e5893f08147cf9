package examples_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"pawl/jobs/jobfile"
)

// faultless reads a job file in which there may be notes, but no warning.
func faultless(t *testing.T, name string, source []byte) *jobfile.File {
	t.Helper()
	f, issues := jobfile.Parse(name, source, nil)
	if jobfile.Worst(issues) > jobfile.Note {
		t.Errorf("%s", jobfile.Lines(issues))
	}
	return f
}

func TestEveryJobFileIsFaultless(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("jobfile/*/pawl.yaml")
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]bool{}
	for _, name := range append(names, "invoices/pawl.yaml") {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range faultless(t, name, source).Jobs {
			kinds[j.Kind] = true
		}
	}
	for _, kind := range []string{"command", "sql", "http", "reconcile", "go"} {
		if !kinds[kind] {
			t.Errorf("there is no example of kind %s", kind)
		}
	}
}

// object is a part of a manifest.
type object = map[string]any

// manifests are all objects of the directory, by kind.
func manifests(t *testing.T) map[string]object {
	t.Helper()
	names, err := filepath.Glob("kubernetes/*.yaml")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	all := map[string]object{}
	for _, name := range names {
		file, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		for dec := yaml.NewDecoder(file); ; {
			var o object
			err := dec.Decode(&o)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			kind, ok := o["kind"].(string)
			if !ok || all[kind] != nil || o["apiVersion"] == nil || at(o, "metadata", "name") == nil {
				t.Errorf("%s: %v is no object of its own", name, o["kind"])
			}
			all[kind] = o
		}
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	}
	return all
}

// at follows a path of keys, and into the first item of each list.
func at(v any, path ...string) any {
	for _, key := range path {
		if list, ok := v.([]any); ok && len(list) > 0 {
			v = list[0]
		}
		o, ok := v.(object)
		if !ok {
			return nil
		}
		v = o[key]
	}
	return v
}

func TestTheManifestsFitEachOther(t *testing.T) {
	t.Parallel()
	all := manifests(t)
	for _, kind := range []string{"Deployment", "Service", "PodDisruptionBudget", "NetworkPolicy", "Job", "ConfigMap"} {
		if all[kind] == nil {
			t.Fatalf("there is no %s", kind)
		}
	}
	jobs, ok := at(all["ConfigMap"], "data", "pawl.yaml").(string)
	if !ok {
		t.Fatal("the ConfigMap has no pawl.yaml")
	}
	faultless(t, "configmap.yaml", []byte(jobs))

	pod := at(all["Deployment"], "spec", "template", "spec")
	container := at(pod, "containers")
	for _, probe := range []string{"startupProbe", "livenessProbe", "readinessProbe"} {
		path, ok := at(container, probe, "httpGet", "path").(string)
		if !ok || path != map[bool]string{true: "/readyz", false: "/healthz"}[probe == "readinessProbe"] {
			t.Errorf("%s asks %q", probe, path)
		}
	}
	args, ok := at(container, "args").([]any)
	if !ok {
		t.Fatal("the Deployment has no args")
	}
	var words []string
	for _, a := range args {
		s, _ := a.(string)
		words = append(words, s)
	}
	line := strings.Join(words, " ")
	m := regexp.MustCompile(`^serve --config=/etc/pawl/pawl.yaml .*--grace=(\S+)`).FindStringSubmatch(line)
	if m == nil {
		t.Fatalf("args %s", line)
	}
	ours, err := time.ParseDuration(m[1])
	if err != nil {
		t.Fatal(err)
	}
	theirs, ok := at(pod, "terminationGracePeriodSeconds").(uint64)
	if longer := time.Duration(theirs) * time.Second; !ok || longer < ours+20*time.Second {
		t.Errorf("Kubernetes waits %s, and pawl up to %s and what the drain needs", longer, ours)
	}
	labels := at(all["Deployment"], "spec", "template", "metadata", "labels", "app.kubernetes.io/component")
	for kind, path := range map[string][]string{
		"Deployment":          {"spec", "selector", "matchLabels"},
		"PodDisruptionBudget": {"spec", "selector", "matchLabels"},
		"Service":             {"spec", "selector"},
	} {
		if got := at(at(all[kind], path...), "app.kubernetes.io/component"); got != labels || got == nil {
			t.Errorf("%s selects %v, and the pods are %v", kind, got, labels)
		}
	}
	if got := at(all["Deployment"], "spec", "template", "spec", "volumes", "configMap", "name"); got != at(all["ConfigMap"], "metadata", "name") {
		t.Errorf("the Deployment mounts %v", got)
	}
}
