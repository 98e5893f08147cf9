package lockclient

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"pawl/internal/clocks"
)

// Config configures a [Client]. Server is required.
type Config struct {
	Server     string        // where pawl serve is, with its base path: https://locks.example.com/pawl
	Key        string        // the bearer key; empty for a server without keys
	KeyFile    string        // or the file that holds it, which is read again for every request
	Holder     string        // who we are, at most 200 bytes; each acquisition adds letters of its own. Default host/pid
	TTL        time.Duration // of Hold's leases, whole seconds from 1 s to 24 h; default 30 s
	Margin     time.Duration // distrust a lease this long before its end, below TTL/2; default a tenth of each lease's TTL
	Grace      time.Duration // how long Hold renews after its context has ended; default 30 s
	HTTP       *http.Client  // default one with timeouts; redirects aren't followed with any
	Logger     *slog.Logger  // default discards
	MaxElapsed time.Duration // how long one call asks again when it isn't answered; default 30 s
}

// Client acquires, renews and releases locks over HTTP. It is safe for
// concurrent use.
type Client struct {
	cfg  Config
	base *url.URL
	http *http.Client
	now  func() clocks.Reading
}

// New returns a Client, or an error if cfg is incomplete or contradictory. It
// doesn't ask the server.
func New(cfg Config) (*Client, error) {
	cfg.Holder = cmp.Or(cfg.Holder, defaultHolder())
	cfg.TTL = cmp.Or(cfg.TTL, 30*time.Second)
	cfg.Grace = cmp.Or(cfg.Grace, 30*time.Second)
	cfg.MaxElapsed = cmp.Or(cfg.MaxElapsed, 30*time.Second)
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("lockclient: %w", err)
	}
	base, err := parseServer(cfg.Server)
	if err != nil {
		return nil, fmt.Errorf("lockclient: %w", err)
	}
	c := &Client{cfg: cfg, base: base, http: httpClient(cfg.HTTP), now: clocks.Now}
	if _, err := c.key(); err != nil {
		return nil, fmt.Errorf("lockclient: %w", err)
	}
	return c, nil
}

func (c *Config) check() error {
	switch {
	case c.Key != "" && c.KeyFile != "":
		return errors.New("Config.Key and Config.KeyFile are both set: give one of them")
	case len(c.Holder) > 200:
		return fmt.Errorf("Config.Holder has %d bytes: shorten it to at most 200", len(c.Holder))
	case c.Margin < 0 || c.Margin >= c.TTL/2:
		return fmt.Errorf("Config.Margin is %v: give one of at least 0 and below half the TTL of %v", c.Margin, c.TTL)
	case c.Grace < 0:
		return fmt.Errorf("Config.Grace is %v: give one of at least 0", c.Grace)
	case c.MaxElapsed < 0:
		return fmt.Errorf("Config.MaxElapsed is %v: give one of at least 0", c.MaxElapsed)
	}
	return checkTTL(c.TTL)
}

func parseServer(server string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimRight(server, "/"))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("Config.Server is %q: give the address of pawl serve, such as http://127.0.0.1:8399", server)
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("Config.Server is %q: leave out user, query and fragment; a key goes into Config.Key", u.Redacted())
	}
	return u, nil
}

// httpClient never follows a redirect: the other place would get the key, and
// a POST would arrive there as a GET.
func httpClient(given *http.Client) *http.Client {
	if given == nil {
		given = &http.Client{Transport: transport(), Timeout: callTimeout}
	}
	h := *given
	h.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &h
}

// transport speaks HTTP/1.1 only: a request that isn't answered in time takes
// its connection along, where HTTP/2 would send the next one down the same
// dead connection.
func transport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true)
	t.TLSHandshakeTimeout = 5 * time.Second
	t.ResponseHeaderTimeout = callTimeout
	t.MaxIdleConnsPerHost = 16
	t.IdleConnTimeout = time.Minute // below the server's, so that it is seldom the server that closes
	return t
}

// key returns the bearer key, empty if there is none.
func (c *Client) key() (string, error) {
	if c.cfg.KeyFile == "" {
		return c.cfg.Key, nil
	}
	b, err := os.ReadFile(c.cfg.KeyFile)
	if err != nil {
		return "", fmt.Errorf("read the key: %w; name the file that has what pawl key create printed", err)
	}
	key := strings.TrimSpace(string(b))
	if key == "" {
		return "", fmt.Errorf("key file %q is empty: put the key into it that pawl key create printed", c.cfg.KeyFile)
	}
	if strings.ContainsAny(key, " \t\r\n") {
		return "", fmt.Errorf("key file %q has more in it than a key: leave in it only what pawl key create printed", c.cfg.KeyFile)
	}
	return key, nil
}

// owner makes the name of one acquisition, so that no process can end the
// lease of another, nor of its own former self.
func (c *Client) owner() string { return c.cfg.Holder + "/" + rand.Text()[:16] }

// margin never eats more than half of a short lease.
func (c *Client) margin(ttl time.Duration) time.Duration {
	return min(cmp.Or(c.cfg.Margin, ttl/10), ttl/2)
}

func defaultHolder() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s/%d", host, os.Getpid())
}
