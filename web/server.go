package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"
)

// ErrOpen says that an address can be reached from other machines though there is no key.
var ErrOpen = errors.New("reachable from other machines")

// CheckListen refuses an address that isn't loopback with [ErrOpen], unless insecure says that it is meant or keys that
// there are keys, which everybody has to show. A name other than localhost counts as reachable: what it means may change.
func CheckListen(addr string, insecure, keys bool) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("web: listen address %q is not host:port: use 127.0.0.1:8399 or the like", addr)
	}
	ip, err := netip.ParseAddr(host)
	if insecure || keys || host == "localhost" || err == nil && ip.Unmap().IsLoopback() {
		return nil
	}
	return fmt.Errorf("web: listen address %q is %w and there is no key: make one with pawl key create, use 127.0.0.1:%s, or say "+
		"--insecure-no-auth if everybody who reaches it may hold and release every lock", addr, ErrOpen, port)
}

// Listen opens addr, so that a caller knows the port before it serves.
func Listen(ctx context.Context, addr string) (net.Listener, error) {
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("web: listen on %q: %w", addr, err)
	}
	return ln, nil
}

// Serve listens on addr and serves h until ctx ends; then it lets answers that are on their way finish, for five
// seconds. It returns nil when ctx ended it. Check the address with [CheckListen] first; health alone may listen
// anywhere.
func Serve(ctx context.Context, addr string, h http.Handler, log *slog.Logger) error {
	ln, err := Listen(ctx, addr)
	if err != nil {
		return err
	}
	return ServeListener(ctx, ln, h, log)
}

// ServeListener is [Serve] on a listener that is open already; it closes it.
func ServeListener(ctx context.Context, ln net.Listener, h http.Handler, log *slog.Logger) error {
	const grace = 5 * time.Second
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s := newServer(h, log)
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	log.InfoContext(ctx, "web: serving", "address", ln.Addr().String())
	select {
	case err := <-served:
		return fmt.Errorf("web: serve: %w", err)
	case <-ctx.Done():
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	if err := s.Shutdown(closing); err != nil { // somebody is slow, or has opened a connection and says nothing
		log.WarnContext(ctx, "web: connections that were still open are closed", "after", grace.String())
		_ = s.Close()
	}
	return nil
}

// newServer bounds what one client can hold: a connection that sends or reads too slowly is closed.
func newServer(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:                      h,
		DisableGeneralOptionsHandler: true, // every answer is ours, that to OPTIONS * too
		ReadHeaderTimeout:            5 * time.Second,
		ReadTimeout:                  10 * time.Second,
		WriteTimeout:                 30 * time.Second,
		IdleTimeout:                  2 * time.Minute,
		MaxHeaderBytes:               16 << 10,
		ErrorLog:                     slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
}
