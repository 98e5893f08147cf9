package web

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
)

// parsed is a request of testdata/http.json, as far as its reading decides.
type parsed struct {
	Name, Group, Method, Path, Body string
	Headers                         map[string]*string
	Bytes                           []byte `json:"body_b64"`
	Gen                             *struct {
		Prefix, Fill, Suffix string
		Count                int
	} `json:"body_gen"`
	Expect int   `json:"expect_status"`
	Alt    []int `json:"alt_status"`
}

func (c parsed) body() []byte {
	switch {
	case c.Gen != nil:
		return []byte(c.Gen.Prefix + strings.Repeat(c.Gen.Fill, c.Gen.Count) + c.Gen.Suffix)
	case c.Bytes != nil:
		return c.Bytes
	default:
		return []byte(c.Body)
	}
}

// verdict is the status that reading the request gives, or 0: the lock's state decides.
func (c parsed) verdict(t *testing.T) int {
	t.Helper()
	path, query, _ := strings.Cut(c.Path, "?")
	p, ok := parsePath(strings.TrimPrefix(strings.TrimPrefix(path, "/locks/"), "/fences/"))
	if !ok {
		return http.StatusNotFound
	}
	if c.Method == http.MethodGet {
		return unless(p.Faults, nil)
	}
	h := http.Header{}
	for name, value := range c.Headers {
		if value != nil {
			h.Add(name, *value)
		}
	}
	body, bare := c.body(), c.Method == http.MethodDelete
	switch {
	case repeatedHeader(h) != "":
		return http.StatusBadRequest
	case len(body) > maxBody:
		return http.StatusRequestEntityTooLarge
	case !jsonContent(h) && (!bare || len(body) > 0):
		return http.StatusUnsupportedMediaType
	}
	var faults []fault
	var err error
	switch {
	case bare:
		_, faults, err = parseRelease(body, query)
	case p.Action == "check":
		_, _, faults, err = parseFence(body)
	default:
		_, faults, err = parseAcquire(body)
	}
	return unless(append(p.Faults, faults...), err)
}

func unless(faults []fault, err error) int {
	switch {
	case err != nil:
		return http.StatusBadRequest
	case len(faults) > 0:
		return http.StatusUnprocessableEntity
	default:
		return 0
	}
}

func TestEveryCaseIsReadAsItsAnswerSays(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/http.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []parsed
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	methods := []string{http.MethodGet, http.MethodPost, http.MethodDelete}
	byReading := []int{http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity}
	read, refused := 0, 0
	for _, c := range cases {
		if !slices.Contains(methods, c.Method) || c.Path == "/locks" || c.Expect == http.StatusMethodNotAllowed {
			continue // the wire's, the list's, or the route table's
		}
		if _, err := url.ParseRequestURI(c.Path); err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
		got, want := c.verdict(t), 0
		switch {
		case slices.Contains(byReading, c.Expect) || c.Group == "resource" && c.Expect == http.StatusNotFound || strings.HasSuffix(c.Path, "/"):
			want = c.Expect
		case slices.Contains(c.Alt, got):
			want = got
		}
		read++
		if got != 0 {
			refused++
		}
		if got != want {
			t.Errorf("%s/%s: %s %.60s read as %d, want %d", c.Group, c.Name, c.Method, c.Path, got, c.Expect)
		}
	}
	if read < 125 || refused < 75 {
		t.Errorf("%d cases were read, %d of them refused: the table is longer", read, refused)
	}
}
