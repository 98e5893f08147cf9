package kinds

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"pawl/jobs"
)

// judge reads the answer and compares it with what is expected.
func (w httpWork) judge(ctx context.Context, res *http.Response, rec *recorder) (*answered, error) {
	body, err := w.read(res, rec)
	status := strconv.Itoa(res.StatusCode)
	switch {
	case slices.Contains(w.RetryOn, status):
		return nil, &verdict{&jobs.RetryError{After: retryAfter(res.Header.Get("Retry-After"), time.Now()), Err: fmt.Errorf("%s: answered %s", w.Method, res.Status)}, jobs.ErrAgain}
	case !w.Expect.has(res.StatusCode) && definitive(res.StatusCode):
		return nil, &verdict{w.failed(fmt.Errorf("answered %s", res.Status)), jobs.ErrFailed}
	case !w.Expect.has(res.StatusCode):
		return nil, &verdict{w.failed(fmt.Errorf("answered %s", res.Status)), jobs.ErrAgain}
	case err != nil:
		return nil, &verdict{w.unanswered(ctx, fmt.Errorf("answer %s broke off: %w", status, err)), nil}
	}
	if err := w.whole(body); err != nil {
		return nil, &verdict{w.failed(fmt.Errorf("answer %s %w", status, err)), jobs.ErrAgain}
	}
	if err := w.Expect.matches(body, w.want); err != nil {
		return nil, &verdict{w.failed(fmt.Errorf("answer %s: %w", status, err)), jobs.ErrAgain}
	}
	return answer(res.StatusCode, body), nil
}

// read reads an answer, one byte more than it may have, and writes it down.
func (w httpWork) read(res *http.Response, rec *recorder) ([]byte, error) {
	_, _ = fmt.Fprintf(rec, "%s\n", res.Status)
	body, err := io.ReadAll(io.LimitReader(res.Body, w.MaxResponse+1))
	_, _ = rec.Write(body[:min(int64(len(body)), w.MaxResponse)])
	return body, err
}

func (w httpWork) whole(body []byte) error {
	if int64(len(body)) > w.MaxResponse {
		return fmt.Errorf("has more than %d bytes", w.MaxResponse)
	}
	return nil
}

// has reports whether a status is a success.
func (a Answer) has(status int) bool {
	if len(a.Status) == 0 {
		return status >= 200 && status <= 299
	}
	return slices.Contains(a.Status, status)
}

// definitive reports whether a status says that nothing was done: not those for "later", nor 409, which may mean that
// the same key is just being worked on.
func definitive(status int) bool {
	later := []int{
		http.StatusRequestTimeout, http.StatusConflict, http.StatusLocked, http.StatusTooEarly, http.StatusTooManyRequests,
	}
	return status >= 400 && status <= 499 && !slices.Contains(later, status)
}

// retryAfter is how long a Retry-After asks to wait: seconds, or a date.
func retryAfter(header string, now time.Time) time.Duration {
	const most = 24 * time.Hour
	if n, err := strconv.ParseUint(strings.TrimSpace(header), 10, 31); err == nil {
		return min(time.Duration(n)*time.Second, most)
	}
	if at, err := http.ParseTime(header); err == nil {
		return min(max(at.Sub(now), 0), most)
	}
	return 0
}

// matches looks for the value that the body must have, which is want.
func (a Answer) matches(body []byte, want any) error {
	if a.Pointer == "" {
		return nil
	}
	got, err := decode(body)
	if err != nil {
		return errors.New("is not JSON")
	}
	got, there := point(got, a.Pointer)
	switch {
	case !there:
		return fmt.Errorf("has no %s", a.Pointer)
	case !equal(got, want):
		return fmt.Errorf("%s is %s, expected %s", a.Pointer, short(got), short(want))
	}
	return nil
}

// decode reads one JSON value, numbers as they are written.
func decode(text []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one value")
	}
	return v, nil
}

// normal is a value as decode would give it.
func normal(v any) (any, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return decode(b)
}

// point follows a JSON pointer (RFC 6901).
func point(v any, pointer string) (any, bool) {
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	for _, name := range strings.Split(pointer, "/")[1:] {
		name = unescape.Replace(name)
		switch in := v.(type) {
		case map[string]any:
			there := false
			if v, there = in[name]; !there {
				return nil, false
			}
		case []any:
			i, err := strconv.ParseUint(name, 10, 31)
			if err != nil || int(i) >= len(in) || name != strconv.Itoa(int(i)) {
				return nil, false
			}
			v = in[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// equal compares what decode has given; 1 and 1.0 are the same.
func equal(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		b, ok := b.(json.Number)
		return ok && sameNumber(a, b)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equal)
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for name, v := range a {
			if other, there := b[name]; !there || !equal(v, other) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(a, b)
}

func sameNumber(a, b json.Number) bool {
	i, errI := a.Int64()
	j, errJ := b.Int64()
	if errI == nil && errJ == nil {
		return i == j
	}
	f, errF := a.Float64()
	g, errG := b.Float64()
	return a == b || errF == nil && errG == nil && f == g
}

// short is a value for an error.
func short(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b[:min(len(b), 100)])
}
