package faults

import (
	"net"
	"sync"
	"time"
)

// Mode is what a proxy does to the bytes that pass.
type Mode int

// The modes of a [Proxy].
const (
	Pass    Mode = iota
	Late         // replies arrive, but late
	Hole         // nothing arrives either way; connections stay open, new ones too
	Swallow      // requests arrive, replies don't: whoever asked for a COMMIT doesn't know
	Refuse       // connections are reset, and new ones too
)

// Proxy leads from a TCP port of this machine to the unix socket of a Postgres.
type Proxy struct {
	listener net.Listener

	mu    sync.Mutex
	to    string // socket
	mode  Mode
	late  time.Duration
	conns map[net.Conn]struct{}
}

// NewProxy listens on a free port until Close and leads to a unix socket.
func NewProxy(socket string) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // nothing is resolved
	if err != nil {
		return nil, err
	}
	p := &Proxy{listener: l, to: socket, conns: map[net.Conn]struct{}{}}
	go p.accept()
	return p, nil
}

// Addr is the host and port that it listens on.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Set changes the mode for all connections. late is for [Late] only. A stream that has lost bytes can't go on: after
// [Hole] and [Swallow] connections are cut.
func (p *Proxy) Set(m Mode, late time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	broken := p.mode == Hole || p.mode == Swallow
	p.mode, p.late = m, late
	if m == Refuse || broken {
		p.cut()
	}
}

// Redirect leads to another socket from now on; connections to the old one are cut.
func (p *Proxy) Redirect(socket string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.to = socket
	p.cut()
}

// Close ends the proxy and its connections.
func (p *Proxy) Close() {
	_ = p.listener.Close()
	p.Set(Refuse, 0)
}

// cut resets all connections. The caller holds p.mu.
func (p *Proxy) cut() {
	for c := range p.conns {
		if t, ok := c.(*net.TCPConn); ok {
			_ = t.SetLinger(0)
		}
		_ = c.Close()
		delete(p.conns, c)
	}
}

func (p *Proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		p.conns[c] = struct{}{}
		mode, to := p.mode, p.to
		if mode == Refuse {
			p.cut()
		}
		p.mu.Unlock()
		if mode == Pass || mode == Late || mode == Swallow {
			go p.serve(c, to)
		}
	}
}

func (p *Proxy) serve(c net.Conn, to string) {
	s, err := net.DialTimeout("unix", to, 5*time.Second) //nolint:noctx // it has a timeout
	if err != nil {
		p.drop(c)
		return
	}
	p.mu.Lock()
	_, open := p.conns[c]
	p.conns[s] = struct{}{}
	p.mu.Unlock()
	if !open { // cut while dialling
		p.drop(s)
		return
	}
	go p.pump(s, c, false)
	p.pump(c, s, true)
}

func (p *Proxy) drop(c net.Conn) {
	_ = c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

func (p *Proxy) pump(dst, src net.Conn, reply bool) {
	defer p.drop(dst)
	defer p.drop(src)
	b := make([]byte, 32<<10)
	for {
		n, err := src.Read(b)
		if err != nil {
			return
		}
		p.mu.Lock()
		mode, late := p.mode, p.late
		p.mu.Unlock()
		switch {
		case mode == Hole, mode == Swallow && reply:
			continue
		case mode == Late && reply:
			<-time.After(late)
		}
		if _, err := dst.Write(b[:n]); err != nil {
			return
		}
	}
}
