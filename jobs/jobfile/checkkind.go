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

// sqlTemplate matches a template or secret in SQL text; '{{1,2}}' is an array there.
var sqlTemplate = regexp.MustCompile(`\{\{\s*(period|run|params|shard)\.|\{\{\s*scheduled_at|\{\{\s*(from|to)\s*\}\}|\$\{(?i:env|file):`)

func (r *reader) checkSQL(f *File, sql *SQL, path string) {
	r.checkText(path, sql.Statement, sql.File, &sql.Text)
	if r.checkDatabase(f, sql.Database, path+".database") && sql.Database != "pawl" && sql.Transaction == "single" {
		r.bad(path+".transaction", "single is only possible in database pawl, where the guard is. Write transaction: per_statement.")
	}
}

// checkText checks that SQL text is there, once, and sets it.
func (r *reader) checkText(path, statement, file string, to *string) {
	written, beside := r.written(path+".statement"), r.written(path+".file")
	switch {
	case written == beside:
		r.bad(path, "needs exactly one of statement and file.")
	case beside && file != "":
		r.readSQL(file, to, path+".file")
	case written:
		if *to = statement; sqlTemplate.MatchString(statement) {
			r.bad(path+".statement", "template inside SQL text is not allowed; use args.")
		}
	}
}

// checkDatabase reports whether there is a database of that name.
func (r *reader) checkDatabase(f *File, name, path string) bool {
	_, there := f.Databases[name]
	if name == "" || name == "pawl" || there {
		return name != ""
	}
	r.bad(path, "database %q is not defined.%s", name, nearest.DidYouMean(name, append(keys(f.Databases), "pawl")))
	return false
}

// readSQL reads the SQL text that stands beside the job file.
func (r *reader) readSQL(file string, to *string, path string) {
	name := file
	if !filepath.IsAbs(name) {
		name = filepath.Join(r.dir, name)
	}
	b, err := os.ReadFile(name)
	if err != nil {
		r.bad(path, "%q can't be read: %s.", file, cause(err))
		return
	}
	*to = string(b)
	if at := sqlTemplate.FindIndex(b); at != nil {
		line := 1 + strings.Count((*to)[:at[0]], "\n")
		r.bad(path, "template inside SQL text is not allowed (%s, line %d); use args.", file, line)
	}
	if strings.TrimSpace(*to) == "" {
		r.bad(path, "%q is empty. Write the SQL text into it.", file)
	}
}

func (r *reader) checkCommand(job *Job, c *Command, path string) {
	if r.written(path+".grace") && r.written(jobOf(path)+".grace") {
		r.bad(path+".grace", "grace is set twice, here and for the job. Remove one.")
	}
	if c.Grace == 0 {
		c.Grace = job.Grace
	}
	if _, set := c.Exit[0]; !set && c.Exit != nil {
		c.Exit[0] = "complete"
	}
	for code := range c.Exit {
		if at := fmt.Sprintf("%s.exit.%d", path, code); code < 0 || code > 255 {
			r.say(Error, r.where(at).key, at, "an exit code is a number from 0 to 255.")
		}
	}
	r.checkArgv(c, path+".argv")
	r.checkEnv(c.Env, path+".env")
	if c.Output.Progress != "" {
		re, err := regexp.Compile(c.Output.Progress)
		switch {
		case err != nil:
			r.bad(path+".output.progress", "is not a regular expression: %s.", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
		case re.NumSubexp() != 2:
			r.bad(path+".output.progress", `has groups: %d. It needs two, done and total: progress=(\d+)/(\d+).`, re.NumSubexp())
		}
	}
}

func (r *reader) checkArgv(c *Command, path string) {
	if len(c.Argv) == 0 {
		if r.written(path) {
			r.bad(path, "is empty. Write the program and its arguments.")
		}
		return
	}
	first := c.Argv[0]
	switch {
	case c.Shell && len(c.Argv) > 1:
		r.bad(path, "is a list of %d, but shell: true wants one text. Write the text, or remove shell: true.", len(c.Argv))
	case c.Shell && (len(first.Values()) > 0 || first.HasSecret()):
		r.bad(path+"[0]", "template or secret inside shell text is not allowed; use env.")
	case !c.Shell && len(c.Argv) == 1 && strings.Contains(strings.TrimSpace(first.literal()), " "):
		r.bad(path+"[0]", "a single string with spaces and no shell: true. Write a list, or shell: true.")
	case first.String() == "":
		r.bad(path+"[0]", "is empty. Write the program's name.")
	case !c.Shell && slices.ContainsFunc(c.Argv, Text.HasSecret):
		r.warn(Warning, path, "everybody on the machine can see a secret among the arguments; use env.")
	}
}

func (r *reader) checkEnv(env map[string]Text, path string) {
	for _, name := range keys(env) {
		at := join(path, name)
		switch {
		case !envName.MatchString(name):
			r.say(Error, r.where(at).key, at, "is not the name of an environment variable. Write letters, digits and _.")
		case strings.HasPrefix(name, "PAWL_"):
			r.say(Error, r.where(at).key, at, "the names that begin with PAWL_ are set by pawl. Choose another.")
		case literalSecret(name, env[name]):
			r.literalSecret(at)
		}
	}
}

var (
	secretName   = regexp.MustCompile(`(?i)^(proxy-)?authorization$|^cookie$|token|secret|passw(or)?d|passphrase|credential|(api|access|private)[-_]?key`)
	secretScheme = regexp.MustCompile(`(?i)^(bearer|basic|token|apikey) +`)
)

// literalSecret reports whether a value of that name seems to be a secret as it is.
func literalSecret(name string, t Text) bool {
	value := secretScheme.ReplaceAllString(t.literal(), "")
	notOne := t.HasSecret() || strings.HasPrefix(value, "/") || strings.HasSuffix(strings.ToUpper(name), "_FILE")
	return secretName.MatchString(name) && len(value) >= 8 && !notOne || hasPassword(t)
}
