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
func (w httpWork) judge(ctx context.Context, run *jobs.Run, res *http.Response, rec *recorder) error {
	_, _ = fmt.Fprintf(rec, "%s\n", res.Status)
	body, err := io.ReadAll(io.LimitReader(res.Body, w.MaxResponse+1))
	_, _ = rec.Write(body[:min(int64(len(body)), w.MaxResponse)])
	status := strconv.Itoa(res.StatusCode)
	switch {
	case slices.Contains(w.RetryOn, status):
		return &jobs.RetryError{After: retryAfter(res.Header.Get("Retry-After"), time.Now()), Err: fmt.Errorf("%s: answered %s", w.Method, res.Status)}
	case !w.success(res.StatusCode):
		return w.refused(ctx, run, res)
	case err != nil:
		return w.unanswered(ctx, fmt.Errorf("answer %s broke off: %w", status, err))
	case int64(len(body)) > w.MaxResponse:
		return w.failed(fmt.Errorf("answer %s has more than %d bytes", status, w.MaxResponse))
	case w.Expect.Pointer == "":
		return nil
	}
	if err := w.matches(body); err != nil {
		return w.failed(fmt.Errorf("answer %s: %w", status, err))
	}
	return nil
}

func (w httpWork) success(status int) bool {
	if len(w.Expect.Status) == 0 {
		return status >= 200 && status <= 299
	}
	return slices.Contains(w.Expect.Status, status)
}

// refused: another run would be refused too. Where the receiver has surely done nothing, a later try by a person has a
// key of its own, or it would get this answer again.
func (w httpWork) refused(ctx context.Context, run *jobs.Run, res *http.Response) error {
	err := w.failed(fmt.Errorf("answered %s", res.Status))
	if !definitive(res.StatusCode) {
		return err
	}
	if noted := run.SpendKey(ctx); noted != nil {
		run.Logger().WarnContext(ctx, "refusal not noted: a later try has the same idempotency key", "error", noted)
	}
	return err
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

// matches looks for the value that the body must have.
func (w httpWork) matches(body []byte) error {
	got, err := decode(body)
	if err != nil {
		return errors.New("is not JSON")
	}
	got, there := point(got, w.Expect.Pointer)
	switch {
	case !there:
		return fmt.Errorf("has no %s", w.Expect.Pointer)
	case !equal(got, w.want):
		return fmt.Errorf("%s is %s, expected %s", w.Expect.Pointer, short(got), short(w.want))
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
