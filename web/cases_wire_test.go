package web_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

func dial(t *testing.T, addr string) *net.TCPConn {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn.(*net.TCPConn)
}

// idle opens connections on which nothing is sent.
func idle(t *testing.T, addr string, n int) {
	t.Helper()
	for range n {
		dial(t, addr)
	}
}

// raw sends bytes as they are and reads what comes back.
func (c *httpCase) raw(t *testing.T, a *lockAPI) {
	t.Helper()
	sent := string(c.Raw)
	if c.RawGen != nil {
		sent = c.RawGen.String()
	}
	conn := dial(t, a.addr)
	limit := 30 * time.Second
	if c.MaxWaitMS > 0 {
		limit = time.Duration(c.MaxWaitMS) * time.Millisecond
	}
	if err := conn.SetDeadline(time.Now().Add(limit)); err != nil {
		t.Fatal(err)
	}
	answered := make(chan struct{})
	go c.write(conn, sent, answered)
	replies := answersOf(t, conn)
	close(answered)
	got := reply{header: http.Header{}}
	if len(replies) > 0 {
		got = replies[0]
	}
	c.judge(t, a, got)
	if want := strings.Count(sent, " HTTP/1.1\r\n"); got.status == http.StatusOK && len(replies) != max(1, want) {
		t.Errorf("%d answers, want %d", len(replies), want)
	}
	_, path, _ := strings.Cut(sent, " ")
	if path, _, _ = strings.Cut(path, " "); got.status != http.StatusOK && strings.HasPrefix(path, "/locks/w") {
		c.isFree(t, a, path)
	}
}

// write sends the bytes, the body of a slow client one by one, and stops when there is an answer.
func (c *httpCase) write(conn *net.TCPConn, sent string, answered <-chan struct{}) {
	whole := sent
	if c.DripMS > 0 {
		whole, sent, _ = strings.Cut(sent, "\r\n\r\n")
		whole += "\r\n\r\n"
	}
	_, _ = io.WriteString(conn, whole) // the server may close before it has read all
	if c.DripMS > 0 {
		tick := time.NewTicker(time.Duration(c.DripMS) * time.Millisecond) // real clock: a slow client
		defer tick.Stop()
		for _, b := range []byte(sent) {
			select {
			case <-answered:
				return
			case <-tick.C:
				_, _ = conn.Write([]byte{b})
			}
		}
	}
	if c.HalfClose {
		_ = conn.CloseWrite()
	}
}

// answersOf reads the answers that come until the server closes, past those that say to go on.
func answersOf(t *testing.T, conn net.Conn) (all []reply) {
	t.Helper()
	r := bufio.NewReader(conn)
	for {
		res, err := http.ReadResponse(r, nil)
		var network net.Error
		switch {
		case errors.As(err, &network) && network.Timeout():
			t.Fatal("the connection is neither answered nor closed")
		case err != nil: // closed
			return all
		}
		if res.StatusCode == http.StatusContinue {
			continue
		}
		var b bytes.Buffer
		_, err = b.ReadFrom(res.Body)
		_ = res.Body.Close()
		all = append(all, reply{res.StatusCode, res.Header, b.String()})
		if err != nil {
			return all
		}
	}
}

// hangUp goes away before the answer: nobody is told of an error, and the lock can be read.
func (c *httpCase) hangUp(t *testing.T) {
	t.Helper()
	a := newAPI(t, nil)
	for range 20 {
		conn := dial(t, a.addr)
		req, err := http.NewRequestWithContext(t.Context(), c.Method, a.url+c.Path, strings.NewReader(c.body(0)))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		if err := errors.Join(req.Write(conn), conn.SetLinger(0), conn.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if got := a.ask(t, http.MethodGet, c.Path, ""); got.status != http.StatusOK && got.status != http.StatusNotFound {
		t.Errorf("the lock = %d %s, want it to be readable", got.status, got.body)
	}
	if log := a.log.String(); strings.Contains(log, "level=WARN") || strings.Contains(log, "level=ERROR") {
		t.Errorf("the log complains: %s", log)
	}
}
