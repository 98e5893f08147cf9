package ui

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"pawl/jobs"
)

// done is what somebody did, as a sentence says it: of whom and of what stand around it.
func done(action string) string {
	switch action {
	case "release_request":
		return "asked to release"
	case "release_decline":
		return "declined to release"
	case "force_release":
		return "released by force"
	case "single_operator":
		return "changed who may approve: single operator"
	case "key_create":
		return "made the key"
	case "key_revoke":
		return "revoked the key"
	case "trigger":
		return "ran by hand"
	case "pause":
		return "paused"
	case "resume":
		return "resumed"
	case "backfill":
		return "backfilled"
	case "rerun":
		return "reran"
	case "retry":
		return "retried"
	case "effect_decide":
		return "decided an effect of"
	case "cancel":
		return "cancelled"
	case "retire":
		return "retired"
	case "replan":
		return "planned anew"
	}
	return strings.ReplaceAll(action, "_", " ")
}

// eventText is what happened, without the word that stands before it.
func eventText(e jobs.RunEvent) string {
	if e.Kind == "ended" {
		return strings.TrimPrefix(e.Text, "Ended: ")
	}
	return e.Text
}

// setting is a value of a definition as people write it in the job file: a definition keeps durations in nanoseconds.
func setting(name string, value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil { // null is none too
		return text
	}
	if slices.Contains([]string{"every_offset", "jitter", "catch_up_window", "start_within", "late_after", "timeout", "keep_runs", "keep_output"}, name) {
		if ns, err := strconv.ParseInt(string(value), 10, 64); err == nil {
			return exact(time.Duration(ns))
		}
	}
	return string(value)
}

// exact is a duration without a loss, and without parts that are zero.
func exact(d time.Duration) string {
	const day = 24 * time.Hour
	if d >= 2*day && d%day == 0 {
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
