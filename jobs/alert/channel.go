package alert

import (
	"fmt"
	"log/slog"
	"net/url"
	"regexp"
	"slices"
)

// The kinds of events.
const (
	Dead       = "dead"        // no run of a period is left
	Missed     = "missed"      // a tick didn't become a run
	Late       = "late"        // a period hasn't started long after its time
	Overdue    = "overdue"     // a period isn't complete by the time that it is due
	AtRisk     = "at_risk"     // a running period will be overdue, if it takes as long as usual
	StaleClaim = "stale_claim" // a lease ended without a release
	Refusal    = "refusal"     // the fence turned a write away
	Stuck      = "stuck"       // a function ignores that its context has ended
	Uncertain  = "uncertain"   // a period is dead, since nobody can tell whether its effect has happened
	Unmatched  = "unmatched"   // a reconciliation has found what two sides say differently
	Timeout    = "timeout"     // a run has used four fifths of its timeout, or all of it
	Unclaimed  = "unclaimed"   // work is due for which no live replica has the function
)

// Kinds returns all kinds of events.
func Kinds() []string {
	return []string{Dead, Missed, Late, Overdue, AtRisk, StaleClaim, Refusal, Stuck, Uncertain, Unmatched, Timeout, Unclaimed}
}

// Channel is a webhook.
type Channel struct {
	Name   string   // ^[a-z][a-z0-9_-]{0,62}$; unique in its app
	URL    string   // http or https; may hold secrets
	Secret string   // signs what is sent; empty: unsigned
	On     []string // the kinds of events that it is told of; default all
}

var channelName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,62}$`)

// FieldError names a field of a channel that can't be used and the fix. It doesn't say the value of a secret.
type FieldError struct {
	Channel, Field, Value, Fix string
}

// Error implements error.
func (e *FieldError) Error() string {
	return fmt.Sprintf("alert: channel %q: %s %s: %s", e.Channel, e.Field, e.Value, e.Fix)
}

// Check returns the first field that can't be used as a [*FieldError].
func (c Channel) Check() error {
	bad := func(field, value, fix string) error { return &FieldError{c.Name, field, value, fix} }
	u, err := url.Parse(c.URL)
	switch {
	case !channelName.MatchString(c.Name):
		return bad("Name", fmt.Sprintf("%q", c.Name), "use a lower-case letter, then up to 62 of a-z, 0-9, _ and -")
	case err != nil || u.Host == "":
		return bad("URL", "isn't absolute", "give one like https://host/path")
	case u.Scheme != "http" && u.Scheme != "https":
		return bad("URL", fmt.Sprintf("has the scheme %q", u.Scheme), "use https or http")
	}
	for _, kind := range c.On {
		if !slices.Contains(Kinds(), kind) {
			return bad("On", fmt.Sprintf("%q", kind), fmt.Sprintf("use some of %v", Kinds()))
		}
	}
	return nil
}

// Kinds returns the kinds of events that the channel is told of.
func (c Channel) Kinds() []string {
	if len(c.On) == 0 {
		return Kinds()
	}
	return c.On
}

// String is the channel's name.
func (c Channel) String() string { return c.Name }

// GoString is the channel without its URL and secret.
func (c Channel) GoString() string { return fmt.Sprintf("alert.Channel{Name: %q}", c.Name) }

// LogValue is the channel's name.
func (c Channel) LogValue() slog.Value { return slog.StringValue(c.Name) }
