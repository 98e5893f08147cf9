package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"pawl/internal/guardian"
)

// relay passes signals on to the command. Before there is one, those that end a program end the wait for the lock.
type relay struct {
	p       *printer
	signals chan os.Signal
	stop    context.CancelFunc

	mu    sync.Mutex
	to    *guardian.Process
	early syscall.Signal
}

// relaySignals begins. The context ends with a signal that comes before the command; nothing else ends it.
func relaySignals(ctx context.Context, p *printer) (context.Context, *relay) {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx)) // the signal that ends the parent is the command's
	r := &relay{p: p, signals: make(chan os.Signal, 16), stop: stop}
	for _, s := range guardian.Forwarded() {
		if !signal.Ignored(s) { // nohup
			signal.Notify(r.signals, s)
		}
	}
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // a reader of ours that has gone must not end us
	go func() {
		for s := range r.signals {
			if sig, ok := s.(syscall.Signal); ok {
				r.pass(sig)
			}
		}
	}()
	return ctx, r
}

func (r *relay) pass(sig syscall.Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.to != nil:
		_ = r.to.Signal(sig) // it may just have ended
		if sig == syscall.SIGTSTP {
			r.p.note("pawl: the command is suspended, and its lease is renewed all the same; to go on: kill -CONT %d", os.Getpid())
		}
	case sig == syscall.SIGINT, sig == syscall.SIGTERM, sig == syscall.SIGHUP, sig == syscall.SIGQUIT:
		r.early = sig
		r.stop()
	}
}

// start starts the command, unless a signal has come.
func (r *relay) start(c guardian.Command) (*guardian.Process, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.early != 0 {
		return nil, r.ended()
	}
	p, err := guardian.Start(c)
	r.to = p
	return p, err
}

// ended is the end by a signal that came early, or nil. The caller of start has r.mu.
func (r *relay) ended() error {
	if r.early == 0 {
		return nil
	}
	return said(128 + int(r.early))
}

// instead is err, unless a signal is the reason.
func (r *relay) instead(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if ended := r.ended(); ended != nil {
		return ended
	}
	return err
}

// end is for when the command has ended: signals are nobody's.
func (r *relay) end() {
	signal.Stop(r.signals)
	r.stop()
}
