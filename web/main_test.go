package web_test

import (
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"sync"
	"testing"

	"pawl/web"
)

// TestMain compares, after all tests, what the routes answered with what their table says. Where only some tests ran it
// can't tell.
func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	all := flag.Lookup("test.run").Value.String() == "" && flag.Lookup("test.skip").Value.String() == "" &&
		flag.Lookup("test.fuzz").Value.String() == "" && flag.Lookup("test.list").Value.String() == ""
	if code == 0 && all && !seen.asTheTableSays() {
		code = 1
	}
	os.Exit(code)
}

// seen are the statuses that all tests of this process were answered, by route.
var seen = &statuses{given: map[string]map[int]bool{}}

type statuses struct {
	mu    sync.Mutex
	given map[string]map[int]bool
}

// recorded notes each answer of h.
func recorded(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := &recorder{ResponseWriter: w, status: http.StatusOK}
		h.ServeHTTP(rec, r)
		if route, ok := web.RouteOf(r); ok {
			seen.note(route.Method+" "+route.Pattern, rec.status)
		}
	})
}

type recorder struct {
	http.ResponseWriter
	status int
}

func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

func (r *recorder) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

func (s *statuses) note(route string, status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.given[route] == nil {
		s.given[route] = map[int]bool{}
	}
	s.given[route][status] = true
}

func (s *statuses) asTheTableSays() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	right := true
	for _, r := range web.APIRoutes() {
		route := r.Method + " " + r.Pattern
		got, want := slices.Sorted(maps.Keys(s.given[route])), r.Statuses
		if !slices.Equal(got, slices.Sorted(slices.Values(want))) {
			right = false
			fmt.Fprintf(os.Stderr, "FAIL: %s answered %v in all tests, and its row of the table says %v\n", route, got, want)
		}
	}
	return right
}
