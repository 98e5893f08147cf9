package web_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"pawl/web"
)

func TestOnlyLoopbackIsListenedOnUnlessInsecure(t *testing.T) {
	t.Parallel()
	for addr, allowed := range map[string]bool{
		"127.0.0.1:8399": true, "127.9.9.9:0": true, "[::1]:8399": true, "localhost:8399": true, "[::ffff:127.0.0.1]:1": true,
		":8399": false, "0.0.0.0:8399": false, "[::]:8399": false, "10.0.0.5:8399": false, "example.com:80": false, "localhost.evil:1": false,
	} {
		err := web.CheckListen(addr, false, false)
		if (err == nil) != allowed || err != nil && !errors.Is(err, web.ErrOpen) {
			t.Errorf("CheckListen(%q) = %v, want allowed %v", addr, err, allowed)
		}
		if err != nil && (!strings.Contains(err.Error(), addr) || !strings.Contains(err.Error(), "--insecure-no-auth") || !strings.Contains(err.Error(), "pawl key create")) {
			t.Errorf("%v: it must name the address and the way out", err)
		}
		if err := web.CheckListen(addr, true, false); err != nil {
			t.Errorf("CheckListen(%q) insecure = %v, want nil", addr, err)
		}
		if err := web.CheckListen(addr, false, true); err != nil {
			t.Errorf("CheckListen(%q) with keys = %v, want nil", addr, err)
		}
	}
	if err := web.CheckListen("8399", true, true); err == nil || !strings.Contains(err.Error(), "127.0.0.1:8399") {
		t.Errorf("an address without a port: %v, want the right form", err)
	}
}

func TestServeLetsAnswersFinish(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	ln, err := web.Listen(ctx, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	begun, done := make(chan struct{}), make(chan error, 1)
	slow := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(begun)
		stop()
		_, _ = w.Write([]byte("whole"))
	})
	go func() { done <- web.ServeListener(ctx, ln, slow, nil) }()
	if got := send(t, http.MethodGet, "http://"+ln.Addr().String()+"/"); got.body != "whole" {
		t.Errorf("answer = %q, want all of it", got.body)
	}
	<-begun
	if err := <-done; err != nil {
		t.Errorf("ServeListener = %v, want nil after its context ended", err)
	}
}

func TestServeSaysWhenThePortIsTaken(t *testing.T) {
	t.Parallel()
	ln, err := web.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	err = web.Serve(t.Context(), ln.Addr().String(), http.NotFoundHandler(), nil)
	if err == nil || !strings.Contains(err.Error(), ln.Addr().String()) {
		t.Errorf("Serve = %v, want an error that names the address", err)
	}
}

func TestHeadersAreBoundedInSizeAndTime(t *testing.T) {
	t.Parallel()
	ln, err := web.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	go func() { done <- web.ServeListener(ctx, ln, web.HealthHandler(web.Config{}), nil) }()
	url := "http://" + ln.Addr().String()
	if got := send(t, http.MethodGet, url+"/healthz", "X-Long", strings.Repeat("x", 64<<10)); got.status != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("64 KiB of headers = %d, want 431", got.status)
	}
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := errors.Join(conn.SetDeadline(time.Now().Add(20*time.Second)), second(conn.Write([]byte("GET / HTTP/1.1\r\nX-Slow: ")))); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("a client that doesn't finish its headers keeps its connection")
	}
	stop()
	if err := <-done; err != nil {
		t.Errorf("ServeListener = %v", err)
	}
}

func second(_ int, err error) error { return err }

// What is vendored is what was published: the name says the version, the sum says that nobody changed it.
func TestVendoredFilesAreAsPublished(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"ui/static/ahn.woff2":         "18b2a1a39a2fa298b0ba5390aca68462669826c90925656f1c1f6796e0e1bbaf",
		"ui/static/ahm.woff2":         "2706b1ee4f452e744ea91f7e4908cbde9c5d35521bf5ffffc71a382a2de89613",
		"ui/static/htmx-4.0.1.min.js": "a0abb04f2f45a1f89d1d4844023245537e5e6014c87b144553e0607b4cc32130",
	} {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(b); hex.EncodeToString(sum[:]) != want {
			t.Errorf("%s = %x, want %s", name, sum, want)
		}
	}
}

// A connection that was opened and says nothing doesn't make the end of a service an error.
func TestASilentConnectionIsClosedAtTheEnd(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	ln, err := web.Listen(ctx, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	hang := make(chan struct{})
	defer close(hang)
	begun := make(chan struct{})
	go func() {
		done <- web.ServeListener(ctx, ln, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { close(begun); <-hang }), nil)
	}()
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, err := c.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	<-begun // and it never answers
	stop()
	if err := <-done; err != nil {
		t.Errorf("ServeListener = %v, want nil", err)
	}
}
