package main

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// payment is what the provider is asked for, and what its ledger holds.
type payment struct {
	Day      string `json:"day"`
	Merchant string `json:"merchant"`
	Cents    int64  `json:"cents"`

	Key string `json:"key,omitempty"` // of the entry
	Ref string `json:"ref,omitempty"`
}

// answer is what a key was answered, and is answered again.
type answer struct {
	status int
	body   any
}

// provider is the other side: it honours idempotency keys, loses one reply in five, is sometimes slow, and declines one merchant in
// twenty under the first key, with an answer that it replays.
type provider struct {
	server  http.Server
	url     string
	arrived chan string // the day of a payment that a fault was meant for; it waits until somebody has heard of it
	closing chan struct{}

	mu       sync.Mutex
	rng      *rand.Rand
	answers  map[string]answer
	working  map[string]bool
	ledger   []payment
	declined map[string]bool // by day and merchant
	lost     int
	slow     int
	replayed int
	marks    map[string][]int // by day: the payments that faults are meant for
	begun    map[string]int   // by day
}

func startProvider(ctx context.Context, seed uint64) (*provider, error) {
	p := &provider{
		rng: rand.New(rand.NewPCG(seed, 1)), answers: map[string]answer{}, working: map[string]bool{}, declined: map[string]bool{},
		arrived: make(chan string), closing: make(chan struct{}), marks: map[string][]int{}, begun: map[string]int{},
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /payouts", p.pay)
	mux.HandleFunc("GET /payouts", p.list)
	p.server.Handler, p.server.ReadHeaderTimeout, p.url = mux, 10*time.Second, "http://"+l.Addr().String()
	go func() { _ = p.server.Serve(l) }()
	return p, nil
}

func (p *provider) pay(w http.ResponseWriter, r *http.Request) {
	var x payment
	key := r.Header.Get("Idempotency-Key")
	if err := json.NewDecoder(r.Body).Decode(&x); err != nil || key == "" {
		reply(w, answer{http.StatusBadRequest, "a payment and an Idempotency-Key are needed"})
		return
	}
	a, delay, lost := p.begin(key)
	if a.status == 0 {
		if p.marked(x.Day) {
			select {
			case p.arrived <- x.Day:
			case <-p.closing:
			}
		}
		time.Sleep(delay) //nolint:forbidigo // real clock: the provider takes its time
		a = p.book(key, x)
	}
	if lost {
		panic(http.ErrAbortHandler)
	}
	reply(w, a)
}

// begin answers what is known of a key, or takes it up.
func (p *provider) begin(key string) (a answer, delay time.Duration, lost bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delay, lost = time.Duration(2+p.rng.IntN(8))*time.Millisecond, p.rng.IntN(5) == 0
	if p.rng.IntN(25) == 0 {
		delay = 300 * time.Millisecond
		p.slow++
	}
	if lost {
		p.lost++
	}
	if a, known := p.answers[key]; known {
		p.replayed++
		return a, 0, lost
	}
	if p.working[key] {
		return answer{http.StatusConflict, "a request with this key is in progress"}, 0, lost
	}
	p.working[key] = true
	return answer{}, delay, lost
}

// marked counts a payment of a day.
func (p *provider) marked(day string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begun[day]++
	return slices.Contains(p.marks[day], p.begun[day])
}

// book pays, whatever has become of who has asked for it.
func (p *provider) book(key string, x payment) answer {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.working, key)
	a := answer{http.StatusUnprocessableEntity, "the account is being checked: ask again with another key"}
	if who := x.Day + " " + x.Merchant; p.picky(x.Merchant) && !p.declined[who] {
		p.declined[who] = true
	} else {
		x.Key, x.Ref = key, "po_"+key
		p.ledger = append(p.ledger, x)
		a = answer{http.StatusCreated, x}
	}
	p.answers[key] = a
	return a
}

// picky is about one merchant in twenty.
func (p *provider) picky(merchant string) bool {
	return len(merchant) > 0 && merchant[len(merchant)-1] == '7'
}

func (p *provider) list(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	all := append([]payment{}, p.ledger...)
	p.mu.Unlock()
	reply(w, answer{http.StatusOK, all})
}

func reply(w http.ResponseWriter, a answer) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(a.status)
	_ = json.NewEncoder(w).Encode(a.body) // who has asked may be gone
}

// stop waits for what is under way.
func (p *provider) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	close(p.closing)
	return errors.Join(p.server.Shutdown(ctx), p.server.Close())
}
