package wheeltest

import (
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/wheel"
)

// racing is every method at once, on the real clock. Run it with -race.
var racing = []conformance{
	{name: "every call returns, nothing fires twice or after a true Cancel", real: true, test: func(t *testing.T, s *setup) {
		// Cases 2 and 8.
		rounds := 50
		if testing.Short() {
			rounds = 5
		}
		for range rounds {
			race(t, s.factory(s.nowMS), s.nowMS)
		}
	}},
}

// race has 100 goroutines work on ids of their own, while the engine starts and
// stops.
func race(t *testing.T, w wheel.Wheel, nowMS func() int64) {
	const goroutines, each = 100, 20
	var gone [goroutines * each]atomic.Int32 // how often: fired or cancelled
	var armed [goroutines * each]atomic.Int32
	var callers sync.WaitGroup

	for g := range goroutines {
		callers.Go(func() {
			for i := range each {
				n := g*each + i
				id := strconv.Itoa(n)
				armed[n].Store(1)
				w.Schedule(id, nowMS()+int64(n%4))
				if n%5 == 0 { // moved: may have fired before, and then once more
					armed[n].Add(1)
					w.Schedule(id, nowMS()+int64(n%3))
				}
				if n%3 == 0 && w.Cancel(id) {
					gone[n].Add(1)
				}
				if n%100 == 0 {
					w.Len()
					w.NextDue()
				}
			}
		})
	}
	var stopped atomic.Bool
	for range 2 {
		callers.Go(func() {
			time.Sleep(2 * time.Millisecond)
			w.Stop()
			stopped.Store(true)
		})
	}
	w.Start(func(batch []wheel.Due) {
		if stopped.Load() {
			t.Error("fired after Stop had returned")
		}
		for _, d := range batch {
			n, err := strconv.Atoi(d.ID)
			if err != nil {
				t.Error(err)
				return
			}
			gone[n].Add(1)
		}
	})

	returned := make(chan struct{})
	go func() {
		callers.Wait()
		close(returned)
	}()
	select {
	case <-returned:
	case <-time.After(10 * time.Second):
		t.Fatal("a call does not return")
	}
	for n := range gone {
		require.LessOrEqual(t, gone[n].Load(), armed[n].Load(), "id %d", n)
	}
}
