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
	r.checkHeaders(h.Headers, path+".headers")
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
	r.checkPointer(path + ".expect.json")
	if p := h.Expect.JSON.Pointer; p != "" && !strings.HasPrefix(p, "/") {
		r.bad(path+".expect.json.pointer", "%q is not a JSON pointer. Write one like /ok.", p)
	}
}

// checkPointer checks that a JSON expectation says both where and what.
func (r *reader) checkPointer(path string) {
	if r.written(path) && !(r.written(path+".pointer") && r.written(path+".equals")) {
		r.bad(path, "needs both pointer and equals.")
	}
}

var headerName = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")

func (r *reader) checkHeaders(headers map[string]Text, path string) {
	for _, name := range keys(headers) {
		at := join(path, name)
		ours := func(h string) bool { return strings.EqualFold(h, name) }
		switch {
		case !headerName.MatchString(name):
			r.say(Error, r.where(at).key, at, "is not the name of a header.")
		case slices.ContainsFunc([]string{"Idempotency-Key", "Fencing-Token", "Pawl-Lock"}, ours):
			r.say(Error, r.where(at).key, at, "is set by pawl. Remove it.")
		case strings.ContainsAny(headers[name].literal(), "\r\n\x00"):
			r.bad(at, "has a line break, which a header can't have. Write it on one line.")
		case literalSecret(name, headers[name]):
			r.literalSecret(at)
		}
	}
}
