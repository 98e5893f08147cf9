package lockclient

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// orLost turns err into a [*LostError] where it says that l isn't held.
func (c *Client) orLost(ctx context.Context, what string, l Lease, err error) error {
	switch slug(err) {
	case "lease-lost", "precondition-failed", "not-found", "owner-mismatch":
		lost, _ := c.whyLost(ctx, l)
		return lost
	}
	return fmt.Errorf("lockclient: %s %s: %w", what, l.Token, err)
}

// tenureJSON is one ended lease in a lock's history.
type tenureJSON struct {
	FencingToken int64  `json:"fencing_token"`
	How          string `json:"how"`
	Successor    *int64 `json:"successor"`
}

// whyLost asks the lock's history how l has ended; released says that it was
// its holder. Without an answer the cause is [ErrNotHeld]: the loss itself is
// certain, and mustn't wait long for its cause.
func (c *Client) whyLost(ctx context.Context, l Lease) (lost *LostError, released bool) {
	lost = &LostError{Token: l.Token, Cause: ErrNotHeld}
	ctx, cancel := context.WithTimeout(ctx, max(min(l.TTL/10, time.Second), minCall))
	defer cancel()
	a, err := c.once(ctx, request{method: http.MethodGet, lock: l.Token.Lock, action: "/history", query: "limit=100"})
	var got struct {
		Tenures []tenureJSON `json:"tenures"`
	}
	if err != nil || json.Unmarshal(a.body, &got) != nil {
		return lost, false
	}
	lost.Cause = ErrExpired
	for _, t := range got.Tenures { // the newest first
		switch {
		case t.FencingToken > l.Token.Seq:
			lost.Cause, lost.Successor = ErrTakenOver, t.FencingToken
		case t.FencingToken == l.Token.Seq:
			return lost, lost.by(t)
		}
	}
	return lost, false
}

// by fills in the cause from the tenure of the lease itself. It reports whether
// its holder released it.
func (e *LostError) by(t tenureJSON) (released bool) {
	if t.Successor != nil {
		e.Successor = *t.Successor
	}
	switch {
	case t.How == "forced":
		e.Cause = ErrForced
	case t.How == "released":
		e.Cause = ErrNotHeld
		return true
	case t.How == "taken_over", t.How == "reacquired", e.Successor != 0:
		e.Cause = ErrTakenOver
	}
	return false
}
