package kinds

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"pawl/jobs"
)

// Reconcile is a job that compares the effects of another one with what the other side says it has got: [jobs.Reconcile].
// Of and one of SQL and HTTP are required.
type Reconcile struct {
	Of      string        // the job whose effects are compared
	Since   time.Duration // how far it looks back; default 48h
	Settle  time.Duration // effects younger than it are left for the next time; default 15m
	SQL     *ReceiptRows
	HTTP    *ReceiptPages
	Compare []Comparison // what must be the same; none: the key is enough
}

// Comparison is a value that both sides have.
type Comparison struct {
	Theirs string // a JSON pointer into a receipt
	Ours   string // the same into the request as the journal has it; of an HTTP job it begins with /body
}

// Badge says how its work is fenced.
func (Reconcile) Badge() string { return "fenced, it only compares" }

// each takes a receipt with what it says as decode gives it.
type each func(jobs.Receipt) error

// Func returns the job's function, or a [*ConfigError].
func (c Reconcile) Func() (jobs.Func, error) {
	list, err := c.list()
	if err != nil {
		return nil, err
	}
	for _, p := range c.Compare {
		for name, pointer := range map[string]string{"Compare.Theirs": p.Theirs, "Compare.Ours": p.Ours} {
			if !strings.HasPrefix(pointer, "/") {
				return nil, &ConfigError{name, pointer, "use a JSON pointer, such as /amount"}
			}
		}
	}
	of := jobs.Reconciliation{Of: c.Of, Since: c.Since, Settle: c.Settle}
	if len(c.Compare) > 0 {
		of.Differs = c.differs
	}
	with := func(run *jobs.Run) (jobs.Job, error) {
		mine := of
		mine.List = func(ctx context.Context, from, to time.Time, f func(jobs.Receipt) error) error {
			return list(ctx, run, window(run, from, to), f)
		}
		return jobs.Reconcile(jobs.Job{Name: "reconcile"}, mine)
	}
	if _, err := with(nil); err != nil {
		return nil, err
	}
	return func(ctx context.Context, run *jobs.Run) error {
		j, err := with(run)
		if err != nil {
			return err
		}
		return j.Func(ctx, run)
	}, nil
}

// list is how the other side is asked.
func (c Reconcile) list() (func(context.Context, *jobs.Run, func(string) string, each) error, error) {
	switch {
	case (c.SQL == nil) == (c.HTTP == nil):
		return nil, &ConfigError{"SQL", "", "give one of SQL and HTTP: what the other side has got"}
	case c.SQL != nil:
		return c.SQL.ready()
	}
	return c.HTTP.ready()
}

// window are the values of a run, and from and to.
func window(run *jobs.Run, from, to time.Time) func(string) string {
	all := values(run)
	return func(name string) string {
		switch name {
		case "from":
			return from.UTC().Format(time.RFC3339Nano)
		case "to":
			return to.UTC().Format(time.RFC3339Nano)
		}
		return all(name)
	}
}

// differs says what isn't the same.
func (c Reconcile) differs(ours jobs.EffectInfo, theirs jobs.Receipt) string {
	request, err := decode(ours.Request)
	if err != nil {
		return "our request can't be read"
	}
	for _, p := range c.Compare {
		we, have := point(request, p.Ours)
		they, got := point(theirs.Body, p.Theirs)
		switch {
		case !have:
			return fmt.Sprintf("our request has no %s", p.Ours)
		case !got:
			return fmt.Sprintf("theirs has no %s", p.Theirs)
		case !equal(we, they) && !sameText(we, they):
			return fmt.Sprintf("%s: we asked for %s, theirs has %s", p.Theirs, short(we), short(they))
		}
	}
	return ""
}

// sameText reports whether a number and a text say the same: files and tables of others have amounts as either.
func sameText(a, b any) bool {
	text, isText := a.(string)
	n, isNumber := b.(json.Number)
	if !isText || !isNumber {
		text, isText = b.(string)
		n, isNumber = a.(json.Number)
	}
	if !isText || !isNumber {
		return false
	}
	_, err := strconv.ParseFloat(text, 64)
	return err == nil && sameNumber(json.Number(text), n)
}

// receipt makes one of what the other side has: a value as decode gives it. Empty detail: the value itself.
func receipt(body any, key, detail string) (jobs.Receipt, error) {
	k, there := point(body, key)
	r := jobs.Receipt{Body: body}
	switch v := k.(type) {
	case string:
		r.IdempotencyKey = v
	case json.Number:
		r.IdempotencyKey = v.String()
	}
	switch {
	case !there:
		return r, fmt.Errorf("has no %s: it is %s", key, short(body))
	case r.IdempotencyKey == "":
		return r, fmt.Errorf("%s is %s, where a key is expected", key, short(k))
	}
	if d, there := point(body, detail); there && d != nil {
		body = d
	}
	if s, ok := body.(string); ok {
		r.Detail = s
		return r, nil
	}
	r.Detail = short(body)
	return r, nil
}
