package web

import (
	"math"
	"mime"
	"net/http"
	"strconv"
	"strings"
)

// noToken is what an If-Match asks for that names no acquisition there ever was: it matches nothing.
const noToken = math.MaxInt64

// repeatedHeader names a single-valued header that was sent twice, or is empty. Proxies differ in which they read.
func repeatedHeader(h http.Header) string {
	for _, name := range []string{"Authorization", "Content-Type", "Idempotency-Key", "If-Match", "X-Request-Id"} {
		if len(h.Values(name)) > 1 {
			return name
		}
	}
	return ""
}

// jsonContent tells whether a body is what it must be: application/json in UTF-8, without a content coding.
func jsonContent(h http.Header) bool {
	media, params, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil || media != "application/json" {
		return false
	}
	if charset, ok := params["charset"]; ok && !strings.EqualFold(charset, "utf-8") {
		return false
	}
	for _, coding := range h.Values("Content-Encoding") {
		if coding = strings.TrimSpace(coding); coding != "" && !strings.EqualFold(coding, "identity") {
			return false
		}
	}
	return true
}

// idempotencyKey is empty where none was sent. The error is a malformedError.
func idempotencyKey(h http.Header) (string, error) {
	values := h.Values("Idempotency-Key")
	if len(values) == 0 {
		return "", nil
	}
	key := values[0]
	odd := strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r > '~' })
	if len(values) > 1 || key == "" || len(key) > 255 || odd {
		return "", malformedError("Idempotency-Key must be sent once, with 1 to 255 printable ASCII characters.")
	}
	return key, nil
}

// ifMatch is the token that the request insists on: 0 without the header and for *, noToken for a tag that no
// acquisition has. The error is a malformedError.
func ifMatch(h http.Header) (int64, error) {
	values := h.Values("If-Match")
	if len(values) == 0 || len(values) == 1 && values[0] == "*" {
		return 0, nil
	}
	tag := values[0]
	bare := strings.TrimPrefix(tag, "W/")
	if len(values) > 1 || len(bare) < 2 || bare[0] != '"' || strings.IndexByte(bare[1:], '"') != len(bare)-2 {
		return 0, malformedError(`If-Match must be sent once, as * or as the ETag of one acquisition, like "42".`)
	}
	token, _ := strconv.ParseInt(bare[1:len(bare)-1], 10, 64)
	if token < 1 || tag != `"`+strconv.FormatInt(token, 10)+`"` { // a token has one spelling
		return noToken, nil
	}
	return token, nil
}
