package main

import (
	"context"
	"crypto/tls"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"sync/atomic"
	"time"
)

// certificate is the pair that the address is served with. It may be replaced while connections are open: those keep
// what they began with.
type certificate struct {
	certFile, keyFile string
	current           atomic.Pointer[tls.Certificate]
}

// loadCertificate reads the pair; without files there is none.
func loadCertificate(certFile, keyFile string) (*certificate, error) {
	if certFile == "" {
		return nil, nil //nolint:nilnil // no certificate is no error: the address is served in plain text
	}
	c := &certificate{certFile: certFile, keyFile: keyFile}
	return c, c.load()
}

// load takes the pair in only when it is whole: one that can't be used leaves the old one in place.
func (c *certificate) load() error {
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	var missing *fs.PathError
	switch {
	case errors.As(err, &missing) && missing.Path == c.keyFile:
		return usage("--tls-key is %q: %s; name the file of the certificate's key", c.keyFile, missing.Err)
	case errors.As(err, &missing):
		return usage("--tls-cert is %q: %s; name the file of the certificate, with those that vouch for it", c.certFile, missing.Err)
	case err != nil:
		return usage("--tls-cert is %q and --tls-key is %q: %s; give a certificate and the key that belongs to it, both as PEM", c.certFile, c.keyFile, err)
	}
	c.current.Store(&pair)
	return nil
}

// wrap serves TLS on ln. HTTP/2 is left out: its limits are others than those that the API states.
func (c *certificate) wrap(ln net.Listener) net.Listener {
	if c == nil {
		return ln
	}
	return tls.NewListener(ln, &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return c.current.Load(), nil
		},
	})
}

// reload takes the pair anew, if there is one.
func (c *certificate) reload(ctx context.Context, log *slog.Logger) {
	if c == nil {
		return
	}
	if err := c.load(); err != nil {
		log.ErrorContext(ctx, "the new TLS certificate can't be used, the old one stays", "error", sentence(err))
		return
	}
	log.InfoContext(ctx, "TLS certificate reloaded", c.facts()...)
}

// facts tell which certificate is served now, and until when it is good.
func (c *certificate) facts() []any {
	leaf := c.current.Load().Leaf
	valid := time.Now().After(leaf.NotBefore) && time.Now().Before(leaf.NotAfter)
	return []any{"names", leaf.DNSNames, "serial", leaf.SerialNumber.Text(16), "expires_at", leaf.NotAfter.UTC(), "valid", valid}
}
