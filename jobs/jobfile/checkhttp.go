package jobfile

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

func (r *reader) checkHTTP(h *HTTP, path string) {
	r.checkURL(path+".url", h.URL)
	if hasPassword(h.URL) {
		r.literalSecret(path + ".url")
	}
	r.checkHeaders(h.Headers, path+".headers", "Idempotency-Key", "Fencing-Token", "Pawl-Lock")
	bodiless := []string{"GET", "HEAD"}
	json, text := r.written(path+".body.json"), r.written(path+".body.text")
	switch {
	case json && text:
		r.bad(path+".body", "has json and text. Keep one of them.")
	case (json || text) && slices.Contains(bodiless, h.Method):
		r.bad(path+".body", "a %s request has no body. Remove it, or write method: POST.", h.Method)
	}
	for i, c := range h.RetryOn {
		if code, err := strconv.Atoi(string(c)); err == nil && slices.Contains(h.Expect.Status, code) {
			r.bad(fmt.Sprintf("%s.retry_on[%d]", path, i), "%s is a success under expect.status too. Remove one of the two.", c)
		}
	}
	r.checkExpect(h.Expect, path+".expect")
	for _, field := range []string{"key_lifetime", "valid_for", "probe"} {
		if slices.Contains(bodiless, h.Method) && r.written(join(path, field)) {
			r.bad(join(path, field), "a %s request changes nothing, and isn't in the journal of effects. Remove it, or write method: POST.", h.Method)
		}
	}
	if h.Probe != nil {
		r.checkProbe(h.Probe, path+".probe")
	}
	switch {
	case h.Probe != nil && r.written(path+".on_timeout"):
		r.bad(path+".on_timeout", "the receiver is asked by probe. Remove one of the two.")
	case h.KeyLifetime == NoTimeout && h.Probe == nil && h.OnTimeout == "retry":
		r.bad(path+".on_timeout", "retry would do it twice, since the receiver keeps no keys (key_lifetime). Write uncertain.")
	}
}

func (r *reader) checkProbe(p *Probe, path string) {
	r.checkURL(path+".url", p.URL)
	if hasPassword(p.URL) {
		r.literalSecret(path + ".url")
	}
	r.checkHeaders(p.Headers, path+".headers")
	r.checkExpect(p.Expect, path+".expect")
	of := func(t Text) bool { return slices.Contains(t.Values(), "effect.key") }
	asks := of(p.URL)
	for _, t := range p.Headers {
		asks = asks || of(t)
	}
	if !asks && !p.URL.faulty {
		r.bad(path, "asks for no request: write {{effect.key}} into its url or a header.")
	}
}

// checkExpect checks what an answer must be like.
func (r *reader) checkExpect(n HTTPNeed, path string) {
	r.checkPointer(path + ".json")
	r.checkIsPointer(path+".json.pointer", n.JSON.Pointer)
}

// checkIsPointer checks that a text that was written is a JSON pointer.
func (r *reader) checkIsPointer(path, pointer string) {
	if pointer != "" && !strings.HasPrefix(pointer, "/") {
		r.bad(path, "%q is not a JSON pointer. Write one like /ok.", pointer)
	}
}

// checkPointer checks that a JSON expectation says both where and what.
func (r *reader) checkPointer(path string) {
	if r.written(path) && !(r.written(path+".pointer") && r.written(path+".equals")) {
		r.bad(path, "needs both pointer and equals.")
	}
}

var headerName = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")

// checkHeaders checks headers, of which taken are set by pawl.
func (r *reader) checkHeaders(headers map[string]Text, path string, taken ...string) {
	for _, name := range keys(headers) {
		at := join(path, name)
		ours := func(h string) bool { return strings.EqualFold(h, name) }
		switch {
		case !headerName.MatchString(name):
			r.say(Error, r.where(at).key, at, "is not the name of a header.")
		case slices.ContainsFunc(taken, ours):
			r.say(Error, r.where(at).key, at, "is set by pawl. Remove it.")
		case strings.ContainsAny(headers[name].literal(), "\r\n\x00"):
			r.bad(at, "has a line break, which a header can't have. Write it on one line.")
		case literalSecret(name, headers[name]):
			r.literalSecret(at)
		}
	}
}
