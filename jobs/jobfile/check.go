package jobfile

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"pawl/internal/nearest"
	"pawl/jobs/schedule"
)

// check looks at what single fields can't tell.
func (r *reader) check(f *File) {
	r.checkFile(f)
	r.checkNames(f)
	if r.written("jobs") && len(f.Jobs) == 0 && r.root.get("jobs").kind != mapping {
		r.warn(Warning, "jobs", "has no job.")
	}
	for i := range f.Jobs {
		if r.root.get("jobs").items[i].kind == mapping {
			r.checkJob(f, &f.Jobs[i], index(i))
		}
	}
	r.checkNeeds(f)
	for i := range f.Jobs {
		r.checkLoad(&f.Jobs[i], index(i))
	}
}

var nameText = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,62}$`)

const nameFix = "Write a lower-case letter, then up to 62 of a-z, 0-9, _ and -."

// checkName reports a name that can't be one. at says where.
func (r *reader) checkName(at mark, path, name string) {
	if name != "" && !nameText.MatchString(name) {
		r.say(Error, at, path, fmt.Sprintf("%q is not a name. %s", name, nameFix))
	}
}

func (r *reader) checkFile(f *File) {
	r.checkName(r.where("app").value, "app", f.App)
	if zone := f.Defaults.Timezone; zone != "" {
		if _, err := schedule.Parse(schedule.Spec{Expr: "@manual", Zone: zone}); err != nil {
			r.scheduleError("defaults", err)
		}
	}
	r.checkAlerts(f, "defaults", f.Defaults.Alerts)
	for name, c := range f.Channels {
		path := join("channels", name)
		r.checkName(r.where(path).key, path, name)
		r.checkURL(path+".webhook", c.Webhook)
		if !c.Secret.IsZero() && !c.Secret.HasSecret() {
			r.literalSecret(path + ".secret")
		}
	}
	for name, d := range f.Databases {
		path := join("databases", name)
		r.checkName(r.where(path).key, path, name)
		if name == "pawl" {
			r.say(Error, r.where(path).key, path, "pawl is the database that serve is connected to. Choose another name.")
		}
		if hasPassword(d.URL) {
			r.literalSecret(path + ".url")
		}
	}
}

// literalSecret warns of a secret that was written into the file. It never shows it.
func (r *reader) literalSecret(path string) {
	r.warn(Warning, path, "looks like a literal secret; use ${env:…} or ${file:…}.")
	r.issues[len(r.issues)-1].Strict = true
}

var passwordText = regexp.MustCompile(`(?i)://[^/?#@]*:[^/?#@]+@|password\s*=\s*\S`)

// hasPassword reports whether a URL or connection string has a password of its own.
func hasPassword(t Text) bool { return passwordText.MatchString(t.literal()) && !t.HasSecret() }

var schemeHost = regexp.MustCompile(`^(?i:https?)://[^/?#{]+[/?#]`)

// checkURL checks a URL as far as it is known. It doesn't show it: secrets may be in it.
func (r *reader) checkURL(path string, t Text) {
	if t.IsZero() || t.faulty || t.HasSecret() && r.env == nil {
		return
	}
	if len(t.Values()) > 0 {
		before := t.Expand(func(string) string { return "{" })
		before, _, _ = strings.Cut(before, "{")
		if !schemeHost.MatchString(before) {
			r.bad(path, "has a template in its scheme or host, or no host. Write these out: https://host/….")
			return
		}
	}
	u, err := url.Parse(t.Expand(func(string) string { return "x" }))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		r.bad(path, "is not an http or https URL. Write one like https://host/path.")
	}
}

// checkAlerts reports channels that there are not.
func (r *reader) checkAlerts(f *File, path string, alerts []string) {
	known := keys(f.Channels)
	for i, name := range alerts {
		at := fmt.Sprintf("%s.alerts[%d]", path, i)
		if !slices.Contains(known, name) && name != "" && r.written(at) {
			r.bad(at, "channel %q is not defined.%s", name, nearest.DidYouMean(name, known))
		}
	}
}

// checkNames reports names that two jobs have.
func (r *reader) checkNames(f *File) {
	first := map[string]int{}
	for i, job := range f.Jobs {
		at := index(i) + ".name"
		r.checkName(r.where(at).value, index(i), job.Name)
		j, twice := first[job.Name]
		switch {
		case job.Name == "":
		case twice:
			r.broken[index(i)] = true
			line := r.where(index(j) + ".name").value.line
			r.say(Error, r.where(at).value, "", fmt.Sprintf("name %q used twice (first at line %d).", job.Name, line))
			r.issues[len(r.issues)-1].Job = job.Name
		default:
			first[job.Name] = i
		}
	}
	heirs := map[string]string{}
	for i, job := range f.Jobs {
		at := index(i) + ".rename_from"
		if heir, twice := heirs[job.RenameFrom]; twice && job.RenameFrom != "" {
			r.bad(at, "job %q is the heir of %q already. Remove one of the two.", heir, job.RenameFrom)
		}
		heirs[job.RenameFrom] = job.Name
		r.checkName(r.where(at).value, at, job.RenameFrom)
		switch j, there := first[job.RenameFrom]; {
		case !there || job.RenameFrom == "":
		case j == i:
			r.bad(at, "is the job's own name. Write the one that it had, or remove it.")
		case f.Jobs[j].RenameFrom != "":
			r.bad(at, "job %q is still in this file, renamed from %q itself. Do one step after the other has run.", job.RenameFrom, f.Jobs[j].RenameFrom)
		default:
			r.bad(at, "job %q is still in this file. Remove one of the two.", job.RenameFrom)
		}
	}
}

// keys returns a map's keys in order.
func keys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
