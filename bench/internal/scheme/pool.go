package scheme

import "sync"

// Pool runs handlers, so many at once.
type Pool struct {
	free chan struct{}
	all  sync.WaitGroup
}

// NewPool makes a pool of so many workers.
func NewPool(workers int) *Pool { return &Pool{free: make(chan struct{}, workers)} }

// Go waits for a free worker and has it run f.
func (p *Pool) Go(f func()) {
	p.free <- struct{}{}
	p.all.Go(func() {
		defer func() { <-p.free }()
		f()
	})
}

// Wait waits until all that was given to Go has run. Go must not be called meanwhile.
func (p *Pool) Wait() { p.all.Wait() }
