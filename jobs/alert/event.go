package alert

import (
	"encoding/json"
	"fmt"
	"time"
)

// Event is what happened, and the body of the request in JSON. What it isn't about is absent.
type Event struct {
	ID       string         `json:"id"`    // the same whenever it is sent
	Kind     string         `json:"event"` // one of Kinds
	At       time.Time      `json:"at"`    // when it was noted, UTC by the database's clock
	App      string         `json:"app,omitempty"`
	Job      string         `json:"job,omitempty"`
	Owner    string         `json:"owner,omitempty"` // of the job
	Period   string         `json:"period,omitempty"`
	Revision int            `json:"revision,omitempty"`
	Run      string         `json:"run,omitempty"`
	Lock     string         `json:"lock,omitempty"`
	Token    int64          `json:"token,omitempty"` // below 2^53
	Detail   map[string]any `json:"detail,omitempty"`
}

// JSON is the body: the event, and in "text" one sentence that a chat shows as it is.
func (e Event) JSON() ([]byte, error) {
	return json.Marshal(struct {
		Event
		Text string `json:"text"`
	}{e, e.Text()})
}

// Text is one sentence for a person.
func (e Event) Text() string {
	s := e.sentence()
	if e.Owner != "" {
		s += " Owner: " + e.Owner + "."
	}
	return s
}

func (e Event) sentence() string {
	what := e.Job + " " + e.Period
	switch e.Kind {
	case Dead:
		return fmt.Sprintf("%s is dead: no run of it is left (%s).", what, e.say("reason"))
	case Uncertain:
		return fmt.Sprintf("%s is dead: nobody can tell whether its effect has happened. Look there before you retry it.", what)
	case Unmatched:
		return fmt.Sprintf("%s: effects of %s of which the other side says otherwise: %s (absent there %s, stray %s, different %s), such as %s. See: pawl effects ls --unmatched --job %[2]s.",
			what, e.say("of"), e.say("new"), e.say("absent"), e.say("stray"), e.say("differs"), e.say("first"))
	case Missed:
		if n := e.say("ticks"); n != "" {
			return fmt.Sprintf("%s and later: %s ticks were missed (%s).", what, n, e.say("reason"))
		}
		return fmt.Sprintf("%s was missed (%s).", what, e.say("reason"))
	case Late:
		s := fmt.Sprintf("%s is late: scheduled at %s and not started.", what, e.say("scheduled_at"))
		if n := e.say("behind"); n != "" && n != "0" {
			s += " Late behind it: " + n + "."
		}
		return s
	case Overdue:
		return fmt.Sprintf("%s is overdue: it was due by %s and is not complete (%s).", what, e.say("due_at"), e.say("state"))
	case AtRisk:
		return fmt.Sprintf("%s will be overdue: it is due by %s, and if it takes as long as usual it ends at %s.", what, e.say("due_at"), e.say("expected_at"))
	case Stuck:
		return fmt.Sprintf("%s: its function ignores that its context has ended; a slot of %s is stuck until it returns.", what, e.say("holder"))
	case Timeout:
		if e.say("timeout") != "" {
			return fmt.Sprintf("%s has used four fifths of its timeout of %s.", what, e.say("timeout"))
		}
		return fmt.Sprintf("%s took longer than its timeout.", what)
	case Unclaimed:
		return fmt.Sprintf("%s has work that no live replica can do, due since %s: none has its function.", e.Job, e.say("due_at"))
	case StaleClaim:
		return fmt.Sprintf("The lease of %s on lock %s ended at %s without a release.", e.say("holder"), e.Lock, e.say("expired_at"))
	case Refusal:
		return fmt.Sprintf("A write under lock %s with the token %d was refused: the holder is another one by now, or none.", e.Lock, e.Token)
	}
	return what + ": " + e.Kind + "."
}

// say is a detail as text.
func (e Event) say(key string) string {
	switch v := e.Detail[key].(type) {
	case nil:
		return ""
	case string:
		return v
	case time.Time:
		return v.UTC().Format(time.RFC3339)
	default:
		return fmt.Sprint(v)
	}
}
