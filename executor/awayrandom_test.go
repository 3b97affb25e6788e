package executor

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/internal/arming"
	"github.com/orderwheel/orderwheel/persist/persisttest"
)

// told is what the user was told of an id.
type told struct {
	dueMS   int64 // as the last answered call said; never: cancelled
	open    bool
	unknown bool // what the last call did; until a claim of it has told
	since   time.Time
}

// awayScene is a random run. Its lock guards all of it, the random numbers too.
type awayScene struct {
	awayRig
	lock         sync.Mutex
	rnd          *rand.Rand
	told         map[string]*told
	fails, slowS int
	away         bool
	users        sync.WaitGroup
	busy         map[string]bool // a user's call is under way; those on one id take turns
}

func (s *awayScene) n(n int) int {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.rnd.IntN(n)
}

func (s *awayScene) ms(n int) time.Duration { return time.Duration(s.n(n)) * time.Millisecond }

// handle checks what a run without a claim may not do, and then fails or not. What
// changed at this very instant may have done so since the run began.
func (s *awayScene) handle(one oneCall) error {
	s.lock.Lock()
	k := s.told[one.id]
	switch {
	case !one.unclaimed:
		k.unknown, k.dueMS = false, 0 // whatever the store says
	case k.since.Equal(time.Now()):
	case k.open, k.unknown, k.dueMS > time.Now().UnixMilli():
		s.t.Errorf("%+v begins, and the user was told %+v", one, *k)
	}
	fails, again := s.rnd.IntN(100) < s.fails, s.rnd.IntN(3) == 0
	s.lock.Unlock()
	time.Sleep(s.ms(s.slowS*1000 + 1))
	switch {
	case fails && again:
		return RetryAt(time.Now().Add(time.Second))
	case fails:
		return errors.New("no")
	}
	return nil
}

// oneCall is one call of the user, who is told what it says at its end.
func (s *awayScene) call(id string) {
	kind, wait, at := s.n(8), s.ms(300), time.Now().Add(s.ms(3000)-500*time.Millisecond)
	tell := func(change func(*told)) {
		s.lock.Lock()
		defer s.lock.Unlock()
		change(s.told[id])
		s.told[id].since = time.Now()
	}
	during := func(end func(*told)) func() {
		return func() {
			tell(func(k *told) { k.open = true })
			time.Sleep(wait)
			tell(func(k *told) { k.open = false; end(k) })
		}
	}
	switch kind {
	default:
		s.move(id, at, during(func(k *told) { k.unknown, k.dueMS = false, at.UnixMilli() }))
	case 0, 1:
		s.cancel(id, during(func(k *told) { k.unknown, k.dueMS = false, never }))
	case 2:
		s.fail(id, arming.Refused, during(func(*told) {}))
	case 3:
		executed := s.n(2) == 0
		s.fail(id, arming.Unknown, during(func(k *told) {
			k.unknown = true
			if executed {
				s.store.schedule(id, at.UnixMilli())
			}
		}))
	}
}

// step is one event of the scene.
func (s *awayScene) step() {
	time.Sleep(s.ms(200))
	if s.n(20) == 0 {
		if s.away {
			s.far.comeBack()
		} else {
			s.far.leave(s.n(2) == 0)
		}
		s.away = !s.away
	}
	id := fmt.Sprint(s.n(len(s.told)))
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.busy[id] {
		return
	}
	s.busy[id] = true
	s.users.Go(func() {
		s.call(id)
		s.lock.Lock()
		defer s.lock.Unlock()
		s.busy[id] = false
	})
}

// Outages, calls of the user and handlers that fail, all at random. In the end
// nothing is left over.
func TestRunsWithoutClaimsKeepTheRulesWhateverHappens(t *testing.T) {
	for _, seed := range persisttest.Seeds(t, 30) {
		t.Run(fmt.Sprintf("ORDERWHEEL_SEED=%d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rnd := rand.New(rand.NewPCG(seed, 0))
				s := &awayScene{rnd: rnd, told: map[string]*told{}, busy: map[string]bool{}, fails: rnd.IntN(60), slowS: rnd.IntN(3)}
				for i := range 12 {
					s.told[fmt.Sprint(i)] = &told{dueMS: never}
				}
				behind := time.Duration(rnd.IntN(100)) * time.Millisecond
				s.awayRig = setupAway(t, s.handle, func(c *Config) {
					c.Workers = 1 + rnd.IntN(4)
					c.Backoff = Backoff{Base: 100 * time.Millisecond, Cap: time.Second, Jitter: 0.2}
					c.LowerMS = func() int64 { return time.Now().Add(-behind).UnixMilli() }
					if size := 1 + rnd.IntN(5); size > 1 {
						inBatches(size, new(noted[int]), new(noted[int]))(c)
					}
				})
				for range 400 {
					s.step()
				}
				s.users.Wait()
				if s.away {
					s.far.comeBack()
				}
				synctest.Wait()
				s.lock.Lock()
				s.fails = 0
				s.lock.Unlock()
				for range 3 { // what nobody here has armed the sweep brings
					later(time.Minute)
					s.sweep()
				}
				later(time.Minute)
				due, running := s.store.left()
				require.Zero(t, due+running)
				e := s.Executor
				require.Empty(t, e.mu.held)
				require.Zero(t, s.Stats().Running+e.mu.spare+len(e.mu.calls)+e.mu.asking+len(e.mu.away)+e.mu.waits.len()+len(e.mu.claimed))
				require.LessOrEqual(t, s.atOnce(), s.cfg.Workers)
			})
		})
	}
}
