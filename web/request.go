package web

import (
	"crypto/rand"
	"net/http"
	"strings"
)

const (
	requestIDHeader = "X-Request-Id"
	maxHeader       = 16 << 10 // of the request line and all headers, in bytes
)

// identified gives every answer the request's id: the client's, if it sent one that is sane.
func identified(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := rand.Text()
		if sent := r.Header.Values(requestIDHeader); len(sent) == 1 && sane(sent[0]) {
			id = sent[0]
		}
		w.Header().Set(requestIDHeader, id)
		next.ServeHTTP(w, r)
	})
}

// requestID is the id that [identified] has given.
func requestID(w http.ResponseWriter) string { return w.Header().Get(requestIDHeader) }

// sane says that an id may stand in logs and tables as it is.
func sane(id string) bool {
	return 0 < len(id) && len(id) <= 64 && !strings.ContainsFunc(id, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("._-", r))
	})
}

// bounded refuses headers that are too large wherever the handler is mounted; a server of ours stops reading sooner.
func bounded(base string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		size := len(r.Method) + len(r.RequestURI) + len(r.Host)
		for name, values := range r.Header {
			for _, v := range values {
				size += len(name) + len(v) + len(": \r\n")
			}
		}
		if size > maxHeader {
			problem(w, r, base, headerTooLarge, "The request line and the headers have more than 16 KiB: send less.")
			return
		}
		if r.ProtoMajor == 1 && len(r.TransferEncoding) > 0 {
			// It may have had a Content-Length too, which net/http forgets: where a proxy in front has gone by that, what follows
			// on this connection is the body's author's, not the next client's.
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// instance is the address that was asked for.
func instance(r *http.Request, base string) string {
	if path, _, _ := strings.Cut(r.RequestURI, "?"); strings.HasPrefix(path, "/") {
		return path
	}
	return base + r.URL.EscapedPath()
}
