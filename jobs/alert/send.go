package alert

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

const (
	sendTimeout   = 10 * time.Second // for one request, its answer included
	mostAnswer    = 64 << 10         // bytes of an answer that are read
	mostRedirects = 3
	mostWait      = time.Hour // that an answer may ask for
)

// The headers of a request.
const (
	headerEvent     = "Pawl-Event"     // the event's kind
	headerID        = "Pawl-Event-Id"  // the event's id
	headerTimestamp = "Pawl-Timestamp" // when it was sent, in Unix seconds
	headerSignature = "Pawl-Signature" // v1= and the signature in hex
)

// StatusError is an answer other than 2xx.
type StatusError struct {
	Status     int
	RetryAfter time.Duration // how long the receiver asks to wait; at most an hour, 0: it says nothing
}

// Error implements error.
func (e *StatusError) Error() string {
	return fmt.Sprintf("alert: the receiver answered %d %s", e.Status, http.StatusText(e.Status))
}

// Sender sends events. The zero value works; it may be used by several goroutines.
type Sender struct {
	Client *http.Client // default one of its own; its CheckRedirect isn't used
}

// Send sends one event to a channel. A nil error means that the receiver has taken it; after any other, it may have.
func (s Sender) Send(ctx context.Context, c Channel, e Event) error {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	body, err := e.JSON()
	if err != nil {
		return fmt.Errorf("alert: event %s: %w", e.ID, err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("alert: channel %s: its URL can't be used", c.Name) // the error would show it
	}
	now := strconv.FormatInt(time.Now().Unix(), 10)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "pawl")
	req.Header.Set(headerEvent, e.Kind)
	req.Header.Set(headerID, e.ID)
	req.Header.Set(headerTimestamp, now)
	if c.Secret != "" {
		req.Header.Set(headerSignature, Sign(c.Secret, now, body))
	}
	resp, err := s.client().Do(req)
	if err != nil {
		return fmt.Errorf("alert: channel %s: %w", c.Name, hidden(err))
	}
	defer resp.Body.Close()                            //nolint:errcheck // whatever it says, it has been answered
	_, _ = io.CopyN(io.Discard, resp.Body, mostAnswer) // so that the connection can be used again
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("channel %s: %w", c.Name, &StatusError{resp.StatusCode, retryAfter(resp.Header.Get("Retry-After"))})
	}
	return nil
}

// Sign is the signature of a body that was sent at a Unix second: "v1=" and the HMAC-SHA-256 of timestamp, "." and body,
// in hex.
func Sign(secret, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(timestamp + "."))
	mac.Write(body)
	return "v1=" + hex.EncodeToString(mac.Sum(nil))
}

func (s Sender) client() *http.Client {
	c := http.Client{}
	if s.Client != nil {
		c = *s.Client
	}
	c.CheckRedirect = sameHost
	return &c
}

// sameHost lets a request go on only to where it was meant to go, and with its body: 301, 302 and 303 would make a GET of it.
func sameHost(next *http.Request, via []*http.Request) error {
	first := via[0].URL
	switch {
	case next.URL.Host != first.Host || next.URL.Scheme != first.Scheme:
		return errors.New("the receiver redirects to another host: give the channel that URL if it is meant")
	case next.Method != http.MethodPost:
		return errors.New("the receiver redirects with a status that drops the body: give the channel the URL that it ends at")
	case len(via) > mostRedirects:
		return errors.New("the receiver redirects too often")
	}
	return nil
}

// hidden is an error without the URL that net/http puts in front of it.
func hidden(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// retryAfter reads seconds or a date.
func retryAfter(s string) time.Duration {
	d := time.Duration(0)
	if n, err := strconv.Atoi(s); err == nil {
		d = time.Duration(min(max(n, 0), int(mostWait/time.Second))) * time.Second
	} else if at, err := http.ParseTime(s); err == nil {
		d = time.Until(at)
	}
	return min(max(d, 0), mostWait)
}
