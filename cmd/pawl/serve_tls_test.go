package main

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"pawl/internal/pgtest"
)

// pair is a certificate that vouches for itself, and its key, as PEM.
func pair(t *testing.T, serial int64) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"pawl.example.org"}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
}

// files are the pair that serve reads.
type files struct{ cert, key string }

func (f files) write(t *testing.T, cert, key []byte) {
	t.Helper()
	for name, b := range map[string][]byte{f.cert: cert, f.key: key} {
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// client trusts one certificate, over a connection that it keeps.
type client struct {
	conn   *tls.Conn
	read   *bufio.Reader
	serial int64
}

func dial(t *testing.T, addr string, trusted []byte) *client {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(trusted)
	d := &tls.Dialer{Config: &tls.Config{RootCAs: pool, NextProtos: []string{"h2", "http/1.1"}}}
	c, err := d.DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	conn, ok := c.(*tls.Conn)
	if !ok {
		t.Fatalf("%T is no TLS connection", c)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &client{conn: conn, read: bufio.NewReader(conn), serial: conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64()}
}

// healthy asks once.
func (c *client) healthy(t *testing.T) {
	t.Helper()
	if _, err := io.WriteString(c.conn, "GET /healthz HTTP/1.1\r\nHost: pawl\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(c.read, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%d, %v", resp.StatusCode, err)
	}
	_ = resp.Body.Close() // it is read
}

func TestServeTakesANewCertificateAtSIGHUPAndKeepsTheOldOneWhenItIsBad(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := files{filepath.Join(dir, "server.pem"), filepath.Join(dir, "server.key")}
	cert1, key1 := pair(t, 1)
	cert2, key2 := pair(t, 2)
	f.write(t, cert1, key1)
	p, _ := serveAPI(t, pgtest.URL(t), "--tls-cert", f.cert, "--tls-key", f.key, "--health-listen", "127.0.0.1:0")
	p.hears(t, 20*time.Second, "TLS certificate loaded")
	addr := encrypted(t, p)
	old := dial(t, addr, cert1)
	old.healthy(t)

	f.write(t, cert2, key2)
	p.signal(t, syscall.SIGHUP)
	p.hears(t, 20*time.Second, "TLS certificate reloaded")
	fresh := dial(t, addr, cert2)
	fresh.healthy(t)
	if fresh.serial != 2 {
		t.Errorf("a new connection has the certificate %d", fresh.serial)
	}
	old.healthy(t) // an open connection goes on

	for what, bad := range map[string][2][]byte{
		"its key is another's": {cert1, key2}, "it is none": {[]byte("nonsense"), key1}, "its key is cut off": {cert1, key1[:40]},
	} {
		_, before := p.said()
		f.write(t, bad[0], bad[1])
		p.signal(t, syscall.SIGHUP)
		pgtest.Eventually(t, 10*time.Second, "it says that "+what, func() bool {
			_, said := p.said()
			return strings.Contains(said[len(before):], "the new TLS certificate can't be used, the old one stays")
		})
		c := dial(t, addr, cert2)
		c.healthy(t)
	}
	f.write(t, cert1, key1)
	p.signal(t, syscall.SIGHUP)
	pgtest.Eventually(t, 10*time.Second, "a good one is taken after bad ones", func() bool {
		_, said := p.said()
		return strings.Count(said, "TLS certificate reloaded") == 2
	})
	dial(t, addr, cert1).healthy(t)

	p.signal(t, syscall.SIGTERM)
	if state := p.ends(t, 20*time.Second); !state.Success() {
		t.Errorf("%v", state)
	}
}

// encrypted is which of the two addresses is served over TLS: plain text is told so there, and heard by the probes' address.
func encrypted(t *testing.T, p *process) (addr string) {
	t.Helper()
	var all []string
	pgtest.Eventually(t, 10*time.Second, "both are served", func() bool {
		all = addresses(p)
		return len(all) == 2
	})
	answers := map[int]string{}
	for _, a := range all {
		status, _, err := fetch(t.Context(), a+"/healthz")
		if err != nil {
			t.Fatal(err)
		}
		answers[status] = strings.TrimPrefix(a, "http://")
	}
	if answers[http.StatusOK] == "" || answers[http.StatusBadRequest] == "" {
		t.Fatalf("one is plain and one is not: %v", answers)
	}
	return answers[http.StatusBadRequest]
}

// Without TLS it is what it always was: the terminal has gone.
func TestServeWithoutTLSEndsAtSIGHUP(t *testing.T) {
	t.Parallel()
	p, _ := serveAPI(t, pgtest.URL(t))
	p.hears(t, 20*time.Second, "runner started")
	p.signal(t, syscall.SIGHUP)
	if state := p.ends(t, 20*time.Second); !state.Success() {
		t.Errorf("%v", state)
	}
}

func TestCheckKeyNamesTheFieldThatCannotBePrinted(t *testing.T) {
	t.Parallel()
	for flag, args := range map[string][]string{
		"--name is \"a\\ab\"":   {"--name", "a\ab", "--role", "reader"},
		"--prefix is \"a\\n\"":  {"--name", "a", "--role", "reader", "--prefix", "a\n"},
		"--name is \"\\xff\"":   {"--name", "\xff", "--role", "reader"},
		"--prefix is \"xxxxxxx": {"--name", "a", "--role", "reader", "--prefix", strings.Repeat("x", 256)},
	} {
		code, out, said := runPawl(t, append([]string{"key", "create"}, args...)...)
		if code != codeUsage || out != "" || !strings.HasPrefix(said, "pawl: "+flag) || strings.Count(said, "\n") != 1 {
			t.Errorf("exit code %d, %q, want %q", code, said, flag)
		}
	}
}
