// Package wheeltest is the conformance suite of package wheel: what every
// engine must do, in tests that run on a clock of their own.
//
//	func TestConformance(t *testing.T) { wheeltest.Run(t, mywheel.New) }
//
// An engine that cannot keep a part of the contract names it in its
// documentation, and skips the test of that part by the test's name. Nothing
// else is skipped.
package wheeltest

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/wheel"
)

// Run runs the suite on the engine that factory makes, less the tests in skips.
func Run(t *testing.T, factory wheel.Factory, skips ...string) {
	t.Helper()
	for _, name := range skips {
		require.True(t, slices.ContainsFunc(suite, func(c conformance) bool { return c.name == name }),
			"%q is to be skipped, but there is no such test", name)
	}
	for _, c := range suite {
		t.Run(c.name, func(t *testing.T) {
			if slices.Contains(skips, c.name) {
				t.Skip("not promised by this engine: its documentation says why")
			}
			t.Parallel()
			if c.real {
				c.test(t, &setup{factory: factory})
				return
			}
			synctest.Test(t, func(t *testing.T) { c.test(t, &setup{factory: factory}) })
		})
	}
}

// conformance is one test of the suite. It runs in a bubble of
// testing/synctest, whose clock jumps ahead whenever all goroutines wait,
// unless it is real.
type conformance struct {
	name string
	real bool
	test func(t *testing.T, s *setup)
}

var suite = slices.Concat(timing, moving, stopping, racing)

// setup makes an engine, its clock, and a receiver of its batches.
type setup struct {
	factory wheel.Factory
	stepMS  atomic.Int64 // by how much the injected clock has been stepped
	fired   fired
}

// nowMS is the injected clock.
func (s *setup) nowMS() int64 { return time.Now().UnixMilli() + s.stepMS.Load() }

// fresh returns an engine that has not been started.
func (s *setup) fresh() wheel.Wheel { return s.factory(s.nowMS) }

// start returns a running engine, which is stopped at the end of the test.
func (s *setup) start(t *testing.T) wheel.Wheel {
	w := s.fresh()
	w.Start(s.receive)
	t.Cleanup(w.Stop)
	return w
}

// hit is one id that has been handed over.
type hit struct {
	wheel.Due
	atMS  int64 // by the injected clock
	batch int
}

// fired is all that has been handed over.
type fired struct {
	mu      sync.Mutex
	hits    []hit
	batches int
}

func (s *setup) receive(batch []wheel.Due) {
	now := s.nowMS()
	s.fired.mu.Lock()
	defer s.fired.mu.Unlock()
	s.fired.batches++
	for _, d := range batch {
		s.fired.hits = append(s.fired.hits, hit{d, now, s.fired.batches})
	}
}

// hits waits until all goroutines wait, and returns what has been handed over
// so far.
func (s *setup) hits() []hit {
	synctest.Wait()
	s.fired.mu.Lock()
	defer s.fired.mu.Unlock()
	return slices.Clone(s.fired.hits)
}

// ids is the sorted ids of hits.
func (s *setup) ids() []string {
	ids := []string{}
	for _, h := range s.hits() {
		ids = append(ids, h.ID)
	}
	slices.Sort(ids)
	return ids
}

// requireOnTime fails if a hit came early, or more than a tick late.
func requireOnTime(t *testing.T, hits []hit) {
	t.Helper()
	for _, h := range hits {
		require.GreaterOrEqual(t, h.atMS, h.DueMS, "%s came early", h.ID)
		require.LessOrEqual(t, h.atMS, h.DueMS+1, "%s came late", h.ID)
	}
}
