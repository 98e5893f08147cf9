package web

import (
	"errors"
	"io"
	"net"
	"net/http"
	"time"
)

// bodyTimeout is how long 16 KiB may take to arrive.
const bodyTimeout = 5 * time.Second

// body reads what the client sends. Where it needn't send anything, an empty body needs no type.
func (c *call) body(needed bool) ([]byte, error) {
	r := c.r
	if r.ContentLength > maxBody {
		return nil, refuse(tooLarge, "The body has more than 16 KiB: send less.")
	}
	if needed || r.ContentLength != 0 {
		if err := c.typed(); err != nil && (needed || r.ContentLength > 0) {
			return nil, err
		}
	}
	b, err := c.read()
	if err == nil && len(b) > 0 && !needed { // sent in chunks: its length is known only now
		err = c.typed()
	}
	return b, err
}

func (c *call) typed() error {
	if jsonContent(c.r.Header) {
		return nil
	}
	c.w.Header().Set("Accept-Encoding", "identity")
	return refuse(unsupportedMediaType, "Send Content-Type: application/json in UTF-8, without a content coding.")
}

// read gives a slow client up. The server may have a limit of its own; this one holds wherever the handler is mounted.
func (c *call) read() ([]byte, error) {
	conn := http.NewResponseController(c.w)
	_ = conn.SetReadDeadline(time.Now().Add(bodyTimeout)) // not every server can
	b, err := io.ReadAll(io.LimitReader(c.r.Body, maxBody+1))
	var network net.Error
	switch {
	case errors.As(err, &network) && network.Timeout():
		c.w.Header().Set("Connection", "close")
		return nil, refuse(timedOut, "The body didn't arrive in time: send the request again.")
	case err != nil:
		c.w.Header().Set("Connection", "close")
		return nil, refuse(malformed, "The body ended before its length: send the request again.")
	case len(b) > maxBody:
		c.w.Header().Set("Connection", "close")
		return nil, refuse(tooLarge, "The body has more than 16 KiB: send less.")
	}
	_ = conn.SetReadDeadline(time.Time{})
	return b, nil
}

// acquireBody reads what acquire and renew are told, with all its faults at once.
func (c *call) acquireBody() (body acquireBody, idem string, err error) {
	if idem, err = idempotencyKey(c.r.Header); err != nil {
		return body, "", err
	}
	b, err := c.body(true)
	if err != nil {
		return body, "", err
	}
	body, faults, err := parseAcquire(b)
	if err != nil {
		return body, "", err
	}
	if faults = append(c.path.Faults, faults...); len(faults) > 0 {
		return body, "", invalid(faults)
	}
	return body, idem, nil
}
