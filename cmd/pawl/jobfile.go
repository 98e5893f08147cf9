package main

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/pflag"

	"pawl/jobs/jobfile"
)

// defaultConfig is the job file that is taken when none is named.
const defaultConfig = "pawl.yaml"

// configFlag names the job file.
func configFlag(f *pflag.FlagSet, config *string) {
	f.StringVar(config, "config", "", "the job file (default pawl.yaml, if it is there)")
	variable(f, "config", "PAWL_CONFIG")
}

// readConfig reads a job file. Secrets are looked up when env is there.
func readConfig(name string, env func(string) string) (*jobfile.File, []jobfile.Issue, error) {
	name = cmp.Or(name, defaultConfig)
	source, err := os.ReadFile(name)
	var path *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, usage("there is no file %q: name the job file with --config FILE, or let pawl init write one to start from", name)
	case errors.As(err, &path):
		return nil, nil, usage("job file %q: %s; name one that can be read with --config FILE", name, path.Err)
	case err != nil:
		return nil, nil, err
	}
	file, issues := jobfile.Parse(name, source, env)
	return file, issues, nil
}

// goodConfig is readConfig, but for errors: they are printed, and end the command. With a job only that one counts, and
// what isn't in any job.
func (c *cli) goodConfig(name, job string, env func(string) string) (*jobfile.File, error) {
	file, issues, err := readConfig(name, env)
	if err != nil {
		return nil, err
	}
	var wrong []jobfile.Issue
	for _, i := range issues {
		if i.Severity == jobfile.Error && (job == "" || i.Job == "" || i.Job == job) {
			wrong = append(wrong, i)
		}
	}
	if len(wrong) > 0 {
		c.p.note("%s", cleanLines(trimLine(jobfile.Lines(wrong))))
		return nil, said(codeUsage)
	}
	if job != "" && fileJob(file, job) == nil {
		return nil, usage("there is no job %q in %s: it has %s", job, cmp.Or(name, defaultConfig), jobNames(file))
	}
	return file, nil
}

// fileJob is the job of that name, or nil.
func fileJob(file *jobfile.File, name string) *jobfile.Job {
	for i := range file.Jobs {
		if file.Jobs[i].Name == name {
			return &file.Jobs[i]
		}
	}
	return nil
}

func jobNames(file *jobfile.File) string {
	var names []string
	for _, j := range file.Jobs {
		names = append(names, j.Name)
	}
	return cmp.Or(strings.Join(names, ", "), "none")
}

func trimLine(s string) string { return strings.TrimSuffix(s, "\n") }

// elsewhere is the host of a file whose jobs this process doesn't run.
func elsewhere(file *jobfile.File) jobfile.Host {
	h := jobfile.Host{Guardian: []string{"pawl", "guardian"}, Databases: map[string]*pgxpool.Pool{}}
	for name := range file.Databases {
		h.Databases[name] = &pgxpool.Pool{} // only that there is one counts
	}
	return h
}
