package ui

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pawl/jobs"
	"pawl/lockrepo/keys"
)

func TestTheSharedPagesAreBounded(t *testing.T) {
	t.Parallel()
	s := newShared()
	for i := range 10_000 {
		if got := share(t.Context(), s, fmt.Sprint(i), func(context.Context) int { return i }); got != i {
			t.Fatalf("page %d is %d", i, got)
		}
	}
	if len(s.pages) > most {
		t.Errorf("%d pages are remembered, want at most %d", len(s.pages), most)
	}
}

func TestAFullMemoryStillServesWhatItRemembersAndForgetsItInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, reads := newShared(), 0
		read := func(context.Context) int { reads++; return reads }
		for i := range most + 50 {
			share(t.Context(), s, fmt.Sprint(i), func(context.Context) int { return i })
		}
		if got := share(t.Context(), s, "0", read); got != 0 || reads != 0 {
			t.Errorf("a remembered page was read again: %d", got)
		}
		<-time.After(2 * sharedFor) // the bubble's clock
		share(t.Context(), s, "new", read)
		if got := share(t.Context(), s, "new", read); got != 1 || len(s.pages) != 1 {
			t.Errorf("page %d, %d are remembered, want 1 and 1", got, len(s.pages))
		}
	})
}

// Whoever waits is told, and the next one reads anew.
func TestAPanicOfOneReaderHangsNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newShared()
		var all sync.WaitGroup
		panics := make(chan any, 5)
		for range 5 {
			all.Go(func() {
				defer func() { panics <- recover() }()
				share(t.Context(), s, "page", func(context.Context) int { <-time.After(time.Second); panic("a fault") }) // the bubble's clock
			})
		}
		all.Wait()
		for range 5 {
			if <-panics == nil {
				t.Error("somebody was given a page that was not read")
			}
		}
		if got := share(t.Context(), s, "page", func(context.Context) int { return 7 }); got != 7 {
			t.Errorf("afterwards the page is %d", got)
		}
	})
}

// faulty is a database whose answer is not what the code thinks.
type faulty struct{ Jobs }

func (faulty) Why(context.Context, string, string) (jobs.Why, error) { panic("index out of range") }

func (faulty) Runs(context.Context, jobs.RunFilter) ([]jobs.RunRecord, error) { return nil, nil }

// A panic in a panel's own goroutine would end the process, and with it the lock API.
func TestAPanicInAPanelEndsItsRequestOnly(t *testing.T) {
	t.Parallel()
	u := New(Config{Jobs: faulty{}, Who: func(*http.Request) (User, error) { return User{ID: "ann", Name: "ann", Role: keys.Reader}, nil }})
	for range 2 {
		w := httptest.NewRecorder()
		u.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/ui/periods/settle/2026-01-01", nil))
		if w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), "The page could not be made") || strings.Contains(w.Body.String(), "out of range") {
			t.Errorf("%d: %s", w.Code, w.Body)
		}
	}
}

func TestOnlyAddressesBelowTheBaseAreLedTo(t *testing.T) {
	t.Parallel()
	for base, to := range map[string]map[string]bool{
		"": {
			"/ui/locks?q=a%2F..%2Fb": true, "/ui/locks/a%2F..%2Fb": true, "/": true, "": false, "//evil": false, `/\evil`: false, "/\t/evil": false, "https://evil/": false,
			"/ui//evil": false, "/ui/../evil": false, "/ui/%2e%2E/evil": false, "/.//evil": false, "/ui/locks\r\nSet-Cookie: a=b": false, "evil": false, "/ui/\x00": false, "/%2f%2fevil": true,
		},
		"/a/b": {
			"/a/b/ui/jobs": true, "/a/b/": true, "/a/b": false, "/a/bc/": false, "/": false, "/a/b/../../evil": false, "/a/b/%2e%2e/%2e%2e/evil": false, "/a/b/.%2e/": false, "/a/b//evil": false,
		},
	} {
		u := New(Config{BasePath: base})
		for next, ok := range to {
			if got := u.local(next); got != next && ok || !ok && got != base+"/" {
				t.Errorf("base %q: %q leads to %q", base, next, got)
			}
		}
	}
}

func TestASpreadsheetCalculatesNoCell(t *testing.T) {
	t.Parallel()
	for cell, want := range map[string]string{
		"=1+1": "'=1+1", "+1": "'+1", "-1": "'-1", "@a": "'@a", "＝1": "'＝1", "\t=1": "\t'=1", " =1": " '=1", `"=1`: `"'=1`,
		"a;=1": "a;'=1", "a; =1": "a; '=1", `a;"=1"`: `a;"'=1"`, "a\t=1": "a\t'=1", "a\n@x": "a\n'@x", "a;=1;=2": "a;'=1;'=2",
		"a = b": "a = b", "a, -b": "a, -b", "2026-01-01": "2026-01-01", "a\r\n\r\nb": "a\r\n\r\nb", "": "",
	} {
		if got := plain(cell); got != want {
			t.Errorf("%q becomes %q, want %q", cell, got, want)
		}
	}
}

func TestAJobThatIsCalledLikeAnActHasAPageOfItsOwn(t *testing.T) {
	t.Parallel()
	u := New(Config{})
	for path, want := range map[string]string{
		addr("ui", "jobs", "pause"): "/ui/jobs/{job}", addr("ui", "jobs", "resume"): "/ui/jobs/{job}", addr("ui", "jobs", "run"): "/ui/jobs/{job}",
		addr("ui", "jobs", "pause", "pause"): "/ui/jobs/{job}/pause", "/ui/jobs/pause": "/ui/jobs/pause",
	} {
		route, args, _ := u.find(http.MethodGet, path)
		if route.Pattern != want {
			t.Errorf("%s is the page of %s, want %s", path, route.Pattern, want)
		}
		if job, ok := args["job"]; ok && !slices.Contains([]string{"pause", "resume", "run"}, job) {
			t.Errorf("%s: job %s", path, job)
		}
	}
}
