package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// payments is the other system: a service that holds reserved money. It is away at times, and loses
// every third answer after it has done its work.
type payments struct {
	server   http.Server
	listener net.Listener
	served   chan struct{} // closed when the server has ended

	mu struct {
		sync.Mutex
		away     bool
		reserved map[string]int  // by order; 1, and 0 when it is released: never less
		known    map[string]bool // the keys of the requests that were done
		requests int
	}
}

func startPayments() (*payments, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &payments{listener: listener, served: make(chan struct{})}
	p.mu.reserved, p.mu.known = map[string]int{}, map[string]bool{}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /release", p.release)
	p.server.Handler, p.server.ReadHeaderTimeout = mux, 5*time.Second
	go func() {
		defer close(p.served)
		_ = p.server.Serve(listener)
	}()
	return p, nil
}

func (p *payments) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = p.server.Shutdown(ctx)
	<-p.served
}

func (p *payments) url() string { return "http://" + p.listener.Addr().String() }

// release gives the money of an order back, once for each key.
func (p *payments) release(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.requests++
	if p.mu.away {
		http.Error(w, "away", http.StatusServiceUnavailable)
		return
	}
	if key := r.Header.Get("Idempotency-Key"); !p.mu.known[key] {
		p.mu.known[key] = true
		p.mu.reserved[r.FormValue("order")]--
	}
	if p.mu.requests%3 == 0 {
		http.Error(w, "the answer is lost", http.StatusBadGateway)
	}
}

func (p *payments) goAway()   { p.set(true) }
func (p *payments) comeBack() { p.set(false) }

func (p *payments) set(away bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.away = away
}

func (p *payments) reserve(no string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.reserved[no] = 1
}

// released is how many orders have their money back.
func (p *payments) released() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, left := range p.mu.reserved {
		if left <= 0 {
			n++
		}
	}
	return n
}

// fault names each order whose money is not where it must be: back, once, exactly when the order is
// closed.
func (p *payments) fault(closed func(no string) bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var faults []error
	for no, left := range p.mu.reserved {
		want := 1
		if closed(no) {
			want = 0
		}
		if left != want {
			faults = append(faults, fmt.Errorf("%s has %d reservations, and should have %d", no, left, want))
		}
	}
	return errors.Join(faults...)
}
