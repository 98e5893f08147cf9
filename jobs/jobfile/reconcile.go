package jobfile

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"pawl/internal/nearest"
	"pawl/jobs/kinds"
)

// Reconcile is the block of a job of kind reconcile.
type Reconcile struct {
	Of      string        `yaml:"of,required" doc:"The job whose effects are compared."`
	Since   time.Duration `yaml:"since" default:"48h" min:"1s" doc:"How far it looks back."`
	Settle  time.Duration `yaml:"settle" default:"15m" min:"1s" doc:"Effects younger than it are left for the next time."`
	SQL     *ReceiptRows  `yaml:"sql" doc:"What the other side has got, in a database; or else http."`
	HTTP    *ReceiptPages `yaml:"http" doc:"What the other side has got, as a list of JSON that a server has; or else sql."`
	Compare []Compare     `yaml:"compare" single:"true" unset:"the key is enough" doc:"Values that must be the same on both sides."`
}

// ReceiptRows are receipts in a database. Args are like those of [SQL].
type ReceiptRows struct {
	Database  string `yaml:"database" default:"pawl" doc:"pawl, or a name under databases."`
	Statement string `yaml:"statement" raw:"true" doc:"One query with a column key, the idempotency key, and perhaps a column detail, for people; or else file. It can change nothing."`
	File      string `yaml:"file" doc:"A file with the query, relative to the job file; or else statement."`
	Args      []any  `yaml:"args" text:"window" scalar:"true" doc:"Bound as $1, $2, …; {{from}} and {{to}} are what it looks back to, and now."`

	// Text is Statement, or what File holds.
	Text string `yaml:"-"`
}

// ReceiptPages are receipts that a server lists.
type ReceiptPages struct {
	URL         Text            `yaml:"url,required" text:"window" doc:"Of the first page; {{from}} and {{to}} are what it looks back to, and now."`
	Headers     map[string]Text `yaml:"headers" text:"window" doc:"Of each request."`
	Items       string          `yaml:"items" raw:"true" unset:"the page is the list" doc:"A JSON pointer to the list in a page, like /data."`
	Key         string          `yaml:"key,required" raw:"true" doc:"A JSON pointer to the idempotency key in an item, like /reference."`
	Detail      string          `yaml:"detail" raw:"true" unset:"the item" doc:"A JSON pointer to what people are shown of an item."`
	Next        string          `yaml:"next" raw:"true" unset:"the Link header with rel=next" doc:"A JSON pointer to the address of the next page, in a page. Nothing there, null or an empty text: it was the last. No page is read from another host."`
	NextParam   string          `yaml:"next_param" unset:"what is at next is an address" doc:"The parameter of the URL that gets what is at next, where that is a mark such as a number and no address."`
	MaxResponse Size            `yaml:"max_response" default:"4MiB" min:"1KiB" max:"64MiB" doc:"A longer page is an error."`
}

// Compare is a value that both sides have.
type Compare struct {
	Theirs string `yaml:"theirs,required" raw:"true" doc:"A JSON pointer into an item, or into a row as an object of its columns."`
	Ours   string `yaml:"ours,required" raw:"true" doc:"A JSON pointer into the request, as pawl effects ls --json shows it; of an http job with a JSON body it begins with /body."`
}

func (j *Job) reconcile(h Host) kinds.Reconcile {
	c := j.Reconcile
	out := kinds.Reconcile{Of: c.Of, Since: c.Since, Settle: c.Settle}
	if q := c.SQL; q != nil {
		out.SQL = &kinds.ReceiptRows{Text: q.Text, Args: q.Args, Database: h.database(q.Database)}
	}
	if p := c.HTTP; p != nil {
		out.HTTP = &kinds.ReceiptPages{
			URL: p.URL, Headers: texts(p.Headers), Items: p.Items, Key: p.Key, Detail: p.Detail, Next: p.Next, NextParam: p.NextParam, MaxPage: int64(p.MaxResponse),
		}
	}
	for _, x := range c.Compare {
		out.Compare = append(out.Compare, kinds.Comparison(x))
	}
	return out
}

func (r *reader) checkReconcile(f *File, c *Reconcile, path string) {
	r.checkOf(f, c.Of, path+".of")
	switch {
	case r.written(path+".sql") == r.written(path+".http"):
		r.bad(path, "needs exactly one of sql and http: what the other side has got.")
	case c.SQL != nil:
		r.checkText(path+".sql", c.SQL.Statement, c.SQL.File, &c.SQL.Text)
		r.checkDatabase(f, c.SQL.Database, path+".sql.database")
	case c.HTTP != nil:
		r.checkPages(c.HTTP, path+".http")
	}
	if c.Since <= c.Settle && c.Since > 0 {
		r.bad(path+".since", "%s is not more than settle (%s). Write more.", short(c.Since), short(c.Settle))
	}
	for i, x := range c.Compare {
		at := fmt.Sprintf("%s.compare[%d]", path, i)
		r.checkIsPointer(at+".theirs", x.Theirs)
		r.checkIsPointer(at+".ours", x.Ours)
	}
}

// checkOf checks whose effects are compared: another file's job can't be seen from here.
func (r *reader) checkOf(f *File, name, path string) {
	i := slices.IndexFunc(f.Jobs, func(j Job) bool { return j.Name == name })
	switch {
	case name == "":
	case i < 0:
		var names []string
		for _, j := range f.Jobs {
			names = append(names, j.Name)
		}
		r.warn(Warning, path, "job %q is not in this file.%s If it is another file's, that is fine.", name, nearest.DidYouMean(name, names))
	case f.Jobs[i].Kind == "http" && f.Jobs[i].HTTP != nil && slices.Contains([]string{"GET", "HEAD"}, f.Jobs[i].HTTP.Method):
		r.bad(path, "job %q only reads: there is nothing to compare. Name one that sends.", name)
	case slices.Contains([]string{"command", "sql", "reconcile"}, f.Jobs[i].Kind):
		r.bad(path, "job %q is of kind %s, which has no effects in the journal. Name one of kind http or go.", name, f.Jobs[i].Kind)
	}
}

func (r *reader) checkPages(p *ReceiptPages, path string) {
	r.checkURL(path+".url", p.URL)
	if hasPassword(p.URL) {
		r.literalSecret(path + ".url")
	}
	r.checkHeaders(p.Headers, path+".headers")
	for _, x := range []struct{ field, pointer string }{{"items", p.Items}, {"key", p.Key}, {"detail", p.Detail}, {"next", p.Next}} {
		r.checkIsPointer(join(path, x.field), x.pointer)
	}
	if p.NextParam != "" && p.Next == "" && !r.written(path+".next") {
		r.bad(path+".next_param", "needs next: where its value is in a page. Write next: and a JSON pointer.")
	}
	if strings.Contains(p.NextParam, "=") {
		r.bad(path+".next_param", "%q is not the name of a parameter. Write the name alone.", p.NextParam)
	}
}
