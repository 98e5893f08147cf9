package apicheck_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/internal/pgtest"
	"pawl/lockrepo"
	"pawl/web"
)

func TestAHistoryWithLostRepliesIsOneThatASingleLockCouldHaveGiven(t *testing.T) {
	t.Parallel()
	all := record(t, pgtest.New(t), 6*time.Second)
	wantOneLock(t, all)
}

// wantOneLock says where the history of a lock can't be continued, if so.
func wantOneLock(t *testing.T, all []porcupine.Operation) {
	t.Helper()
	start, m := time.Now(), oneLock()
	for _, one := range m.Partition(all) {
		got, info := porcupine.CheckOperationsVerbose(m, one, time.Minute)
		if got == porcupine.Ok {
			continue
		}
		t.Errorf("%s: %d calls: %s", one[0].Input.(asked).lock, len(one), got)
		for _, longest := range info.PartialLinearizationsOperations()[0] {
			for _, o := range longest[max(0, len(longest)-30):] {
				t.Log(m.DescribeOperation(o.Input, o.Output))
			}
			t.Log("then none of")
			last := longest[len(longest)-1]
			n := 0
			for _, o := range one {
				if o.Call > last.Call-100000 && n < 30 && !slices.Contains(longest, o) {
					n++
					t.Log(m.DescribeOperation(o.Input, o.Output))
				}
			}
			break
		}
	}
	t.Logf("%d calls, checked in %s", len(all), time.Since(start))
}

// A check that can't fail says nothing.
func TestTheHistoryOfABrokenLockIsRecognised(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ function, rule, broken string }{
		"release forgets the owner": {"pawl.release_as", "p_holder, p_key, p_token", "l.holder, p_key, p_token"},
		"renew forgets the token":   {"pawl.renew_as", "p_holder, p_key, p_token", "p_holder, p_key, 0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.New(t)
			rewrite(t, pool, c.function, c.rule, c.broken)
			if all := record(t, pool, 3*time.Second); porcupine.CheckOperationsTimeout(oneLock(), all, time.Minute) != porcupine.Illegal {
				t.Errorf("%d calls, and nothing was found", len(all))
			}
		})
	}
}

// rewrite breaks a function of the protocol in this test's own database.
func rewrite(t *testing.T, pool *pgxpool.Pool, function, rule, broken string) {
	t.Helper()
	var text string
	if err := pool.QueryRow(t.Context(), "select pg_get_functiondef($1::text::regproc)", function).Scan(&text); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text, rule) {
		t.Fatalf("%s has no %q", function, rule)
	}
	if _, err := pool.Exec(t.Context(), strings.ReplaceAll(text, rule, broken)); err != nil {
		t.Fatal(err)
	}
}

// shop is one lock and how its clients use it: of a hundred calls so many of each kind, the rest look.
type shop struct {
	lock                    string
	acquire, renew, release int
	pause                   time.Duration // between two calls, at most
}

func shops() []shop {
	return []shop{
		{"busy", 35, 20, 30, 20 * time.Millisecond},
		{"kept", 30, 50, 2, 60 * time.Millisecond},
		{"forgotten", 50, 5, 0, 150 * time.Millisecond}, // only its expiry frees it
	}
}

// recorder calls the API and writes down what it asked and what it was told.
type recorder struct {
	url   string
	start time.Time
	http  *http.Client
	fail  func(format string, args ...any) // of the test

	mu  sync.Mutex
	all []porcupine.Operation
}

// record lets five clients use each lock for so long, three names among them, and loses about one reply in twenty.
func record(t *testing.T, pool *pgxpool.Pool, d time.Duration) []porcupine.Operation {
	t.Helper()
	locks, err := lockrepo.New(lockrepo.Config{Pool: pool})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(locks.Close)
	srv := httptest.NewServer(web.Handler(web.Config{API: locks}))
	t.Cleanup(srv.Close)
	r := &recorder{url: srv.URL, start: time.Now(), http: srv.Client(), fail: t.Errorf}
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	var clients sync.WaitGroup
	for i, s := range shops() {
		for n := range 5 {
			clients.Go(func() { r.use(ctx, s, 5*i+n) })
		}
	}
	clients.Wait()
	if len(r.all) < 200 {
		t.Fatalf("only %d calls", len(r.all))
	}
	return r.all
}

func (r *recorder) use(ctx context.Context, s shop, id int) {
	known := map[string]int64{} // the last token that this client knows of each owner
	for ctx.Err() == nil {
		in := asked{lock: s.lock, owner: string("abc"[rand.IntN(3)]), ttl: time.Second.Microseconds()}
		switch n := rand.IntN(100); {
		case n < s.acquire:
			in.op = "acquire"
		case n < s.acquire+s.renew:
			in.op = "renew"
		case n < s.acquire+s.renew+s.release:
			in.op = "release"
		default:
			in.op = "get"
		}
		if in.op == "renew" || in.op == "release" {
			in.match = known[in.owner] * int64(rand.IntN(2))
		}
		out := r.ask(&in)
		if out.token != 0 {
			known[out.owner] = out.token
		}
		r.note(id, in, out)
		pause(ctx, s.pause)
	}
}

func (r *recorder) note(id int, in asked, out told) {
	if out.status == 0 && in.op == "get" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, porcupine.Operation{ClientId: id, Input: in, Call: in.call, Output: out, Return: in.back})
}

// now is the time by the clock that the database has too.
func (r *recorder) now() int64 { return r.start.UnixMicro() + time.Since(r.start).Microseconds() }

// ask sends in, unless it is lost on the way; its answer may be lost too, or the call broken off at any moment.
func (r *recorder) ask(in *asked) told {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	fate := rand.IntN(60)
	if fate == 0 {
		defer time.AfterFunc(rand.N(3*time.Millisecond), cancel).Stop()
	}
	in.call, in.back = r.now(), math.MaxInt64
	if fate == 1 {
		in.back = r.now()
		return told{}
	}
	out, err := r.send(ctx, in)
	switch {
	case err != nil && !errors.Is(err, context.Canceled):
		r.fail("%+v: %v", in, err)
		return told{}
	case err != nil: // it may still happen, whenever
		return told{}
	}
	if in.back = r.now(); fate == 2 {
		return told{}
	}
	if out.status >= 500 && out.status != http.StatusServiceUnavailable {
		r.fail("%+v -> %d", in, out.status)
	}
	return out
}

func (r *recorder) send(ctx context.Context, in *asked) (told, error) {
	method, path, body := http.MethodPost, "/locks/"+in.lock, fmt.Sprintf(`{"owner":%q,"ttl_seconds":1}`, in.owner)
	switch in.op {
	case "renew":
		path += "/renew"
	case "release":
		method, body = http.MethodDelete, fmt.Sprintf(`{"owner":%q}`, in.owner)
	case "get":
		method, body = http.MethodGet, ""
	}
	req, err := http.NewRequestWithContext(ctx, method, r.url+path, bytes.NewBufferString(body))
	if err != nil {
		return told{}, err
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if in.match != 0 {
		req.Header.Set("If-Match", strconv.Quote(strconv.FormatInt(in.match, 10)))
	}
	if in.op == "acquire" && rand.IntN(2) == 0 {
		req.Header.Set("Idempotency-Key", strconv.FormatUint(rand.Uint64(), 36))
	}
	res, err := r.http.Do(req)
	if err != nil {
		return told{}, err
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return told{}, err
	}
	return read(in.op, res.StatusCode, b)
}

// read takes out of an answer what the model knows of.
func read(op string, status int, body []byte) (told, error) {
	out := told{status: status}
	if status != http.StatusOK {
		return out, nil
	}
	type lock struct {
		Owner     string     `json:"owner"`
		Token     int64      `json:"fencing_token"`
		Acquired  time.Time  `json:"acquired_at"`
		Renewed   time.Time  `json:"renewed_at"`
		ExpiresAt *time.Time `json:"expires_at"`
	}
	var got struct {
		Acquired  bool       `json:"acquired"`
		ExpiresAt *time.Time `json:"expires_at"`
		Lock      lock       `json:"lock"`
	}
	if err := json.Unmarshal(body, &got); err != nil {
		return out, fmt.Errorf("%s: %w", body, err)
	}
	out.acquired, out.owner, out.token = got.Acquired, got.Lock.Owner, got.Lock.Token
	if out.at = got.Lock.Renewed.UnixMicro(); op == "acquire" {
		out.at = got.Lock.Acquired.UnixMicro()
	}
	for _, t := range []*time.Time{got.ExpiresAt, got.Lock.ExpiresAt} {
		if t != nil {
			out.expires = t.UnixMicro()
		}
	}
	return out, nil
}
