package guardian

import (
	"encoding/json"
	"io"
	"syscall"
	"time"
)

// spec is the first thing that the owner tells the guardian.
type spec struct {
	Marker   string
	Grace    time.Duration
	Deadline time.Duration
	Dir      string
}

// order is what the owner says later. One of its fields is set.
type order struct {
	Deadline time.Duration  `json:",omitempty"`
	Signal   syscall.Signal `json:",omitempty"`
	End      bool           `json:",omitempty"` // TERM, a grace, KILL
	Kill     bool           `json:",omitempty"`
}

// listen passes orders on until the pipe closes.
func listen(from *json.Decoder) <-chan order {
	orders := make(chan order)
	go func() {
		defer close(orders)
		for {
			var o order
			if from.Decode(&o) != nil {
				return
			}
			orders <- o
		}
	}()
	return orders
}

// speak writes orders until done. A guardian that is stopped may hold it up, and nobody else.
func speak(w io.WriteCloser, orders <-chan order, done <-chan struct{}) {
	defer func() { _ = w.Close() }()
	to := json.NewEncoder(w)
	for {
		select {
		case <-done:
			return
		case o := <-orders:
			if to.Encode(o) != nil {
				return // it has ended, and Wait tells
			}
		}
	}
}
