package web_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// What stands behind a chunked body on its connection isn't carried out: a proxy that went by the Content-Length beside it has
// taken that for the body, and would give its answer to another client.
func TestNothingIsSmuggledBehindAChunkedBody(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	behind := fmt.Sprintf("POST /locks/smuggled HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(alice), alice)
	for name, head := range map[string]string{
		"both":         fmt.Sprintf("Content-Length: %d\r\nTransfer-Encoding: chunked\r\n", 5+len(behind)),
		"chunked only": "Transfer-Encoding: chunked\r\n",
	} {
		answer := converse(t, a.addr, "POST /locks/x HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"+head+"\r\n0\r\n\r\n"+behind)
		if strings.Count(answer, "HTTP/1.1 ") != 1 || !strings.Contains(answer, "Connection: close") || strings.Contains(answer, "smuggled") {
			t.Errorf("%s: %s", name, answer)
		}
	}
}

func TestOptionsOfTheWholeServerIsAnsweredLikeAllElse(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	answer := converse(t, a.addr, "OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	if !strings.HasPrefix(answer, "HTTP/1.1 404 ") || !strings.Contains(answer, "X-Request-Id: ") || !strings.Contains(answer, "/problems/not-found") {
		t.Error(answer)
	}
}

// converse sends text as it is and returns what comes until the server closes the connection.
func converse(t *testing.T, addr, text string) string {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	answer, _ := io.ReadAll(conn) // a reset after it is an end too
	return string(answer)
}
