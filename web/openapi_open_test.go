package web_test

import (
	"net/http"
	"testing"

	"pawl/web"
)

// describedServer has a lock API that nobody calls: the description is all that is asked for.
func describedServer(t *testing.T) string {
	t.Helper()
	return serve(t, web.Handler(web.Config{API: struct{ web.API }{}, Insecure: true})).URL
}

func TestTheDescriptionIsOpenToAll(t *testing.T) {
	t.Parallel()
	url := describedServer(t)
	for path, media := range map[string]string{"/openapi.json": "application/json", "/docs": "text/html; charset=utf-8"} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			if got := send(t, method, url+path); got.status != http.StatusOK || got.header.Get("Content-Type") != media || got.header.Get("X-Request-Id") == "" {
				t.Errorf("%s %s = %d %v", method, path, got.status, got.header)
			}
		}
		send(t, http.MethodPost, url+path).isProblem(t, http.StatusMethodNotAllowed, "/problems/method-not-allowed")
		send(t, http.MethodGet, url+path+"/").isProblem(t, http.StatusNotFound, "/problems/not-found")
	}
}
