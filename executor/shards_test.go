package executor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/persist"
)

// halfStore is a store of which the shard of the ids that begin with "far" can be
// away: their part of a call waits until its ctx ends, or fails at once.
type halfStore struct {
	*fakeStore
	away     atomic.Bool
	fails    atomic.Bool
	acksOnly atomic.Bool            // only acks are away
	acked    atomic.Pointer[func()] // called once, when an ack is done and not yet answered
}

// split is what can be answered of a batch, and the places of the rest.
func (s *halfStore) split(ids []string) (near, missing []int) {
	for i, id := range ids {
		if s.away.Load() && strings.HasPrefix(id, "far") {
			missing = append(missing, i)
		} else {
			near = append(near, i)
		}
	}
	return near, missing
}

// partly is the error of a call that was answered in part.
func (s *halfStore) partly(ctx context.Context, asked int, missing []int) error {
	if len(missing) == 0 {
		return nil
	}
	err := errors.New("no")
	if !s.fails.Load() {
		<-ctx.Done()
		err = ctx.Err()
	}
	if len(missing) == asked {
		return err
	}
	return &persist.PartialError{Missing: missing, Err: err}
}

func everyPlace[T any](list []T) (places []int) {
	for i := range list {
		places = append(places, i)
	}
	return places
}

func pick[T any](list []T, places []int) (picked []T) {
	for _, i := range places {
		picked = append(picked, list[i])
	}
	return picked
}

// spread puts answers back at their places in a batch of n.
func spread[T any](answers []T, places []int, n int) []T {
	all := make([]T, n)
	for k, i := range places {
		all[i] = answers[k]
	}
	return all
}

func (s *halfStore) Claim(ctx context.Context, token string, ids []string, lease time.Duration, most int) (persist.Claims, error) {
	near, missing := s.split(ids)
	if s.acksOnly.Load() {
		near, missing = everyPlace(ids), nil
	}
	got, err := s.fakeStore.Claim(ctx, token, pick(ids, near), lease, most)
	if err != nil {
		return got, err
	}
	got.Claims = spread(got.Claims, near, len(ids))
	return got, s.partly(ctx, len(ids), missing)
}

func (s *halfStore) Ack(ctx context.Context, leases []persist.Lease) ([]persist.Settlement, error) {
	ids := make([]string, len(leases))
	for i, l := range leases {
		ids[i] = l.ID
	}
	near, missing := s.split(ids)
	got, err := s.fakeStore.Ack(ctx, pick(leases, near))
	if err != nil {
		return got, err
	}
	if acked := s.acked.Swap(nil); acked != nil {
		(*acked)()
	}
	return spread(got, near, len(ids)), s.partly(ctx, len(leases), missing)
}

func (s *halfStore) Renew(ctx context.Context, leases []persist.Lease, lease time.Duration) ([]bool, error) {
	ids := make([]string, len(leases))
	for i, l := range leases {
		ids[i] = l.ID
	}
	near, missing := s.split(ids)
	got, err := s.fakeStore.Renew(ctx, pick(leases, near), lease)
	if err != nil {
		return got, err
	}
	return spread(got, near, len(ids)), s.partly(ctx, len(leases), missing)
}

func (s *halfStore) Retry(ctx context.Context, retries []persist.Retry) ([]persist.Settlement, error) {
	ids := make([]string, len(retries))
	for i, r := range retries {
		ids[i] = r.ID
	}
	near, missing := s.split(ids)
	got, err := s.fakeStore.Retry(ctx, pick(retries, near))
	if err != nil {
		return got, err
	}
	return spread(got, near, len(ids)), s.partly(ctx, len(ids), missing)
}

// onHalf is a rig whose store can be half away.
func onHalf(t *testing.T, handler Handler, change ...func(*Config)) (*rig, *halfStore) {
	half := &halfStore{}
	r := setup(t, handler, append([]func(*Config){func(c *Config) {
		half.fakeStore = c.Store.(*fakeStore)
		c.Store, c.Patience, c.RequireClaim = half, 2*time.Second, true
		c.ShardOf = func(id string) int {
			if strings.HasPrefix(id, "far") {
				return 1
			}
			return 0
		}
	}}, change...)...)
	return r, half
}

// names collects the ids that ran.
type names struct {
	mu  sync.Mutex
	ran map[string]int
}

func (n *names) handle(_ context.Context, task Task) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ran[task.ID]++
	return nil
}

// onHalfSinceClaimed is onHalf where ids were claimed, the shard of the far ones has gone away since,
// and only then the handlers go on.
func onHalfSinceClaimed(t *testing.T, fails bool, ids ...string) (*rig, *halfStore, *names) {
	n := &names{ran: map[string]int{}}
	away := make(chan struct{})
	r, half := onHalf(t, func(ctx context.Context, task Task) error {
		<-away
		return n.handle(ctx, task)
	})
	half.fails.Store(fails)
	for _, id := range ids {
		r.schedule(id, time.Now())
	}
	later(time.Second)
	half.away.Store(true)
	close(away)
	return r, half, n
}

func TestAShardThatIsAwayHoldsUpNoClaimOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := names{ran: map[string]int{}}
		r, half := onHalf(t, n.handle)
		half.away.Store(true)
		for _, id := range []string{"far1", "near1", "far2", "near2"} {
			r.schedule(id, time.Now())
		}
		later(20 * time.Second)
		require.Equal(t, map[string]int{"near1": 1, "near2": 1}, n.ran)
		for _, id := range []string{"far3", "near3"} {
			r.schedule(id, time.Now())
		}
		later(20 * time.Second)
		require.Equal(t, 1, n.ran["near3"], "also while the others are asked again and again")
		half.away.Store(false)
		later(20 * time.Second)
		require.Len(t, n.ran, 6)
		due, running := r.store.left()
		require.Zero(t, due+running)
		require.EqualValues(t, 6, r.Stats().Done)
	})
}

func TestAShardThatIsAwayHoldsUpNoAckOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, half, n := onHalfSinceClaimed(t, false, "far1", "near1", "far2", "near2")
		later(10 * time.Second)
		require.Len(t, n.ran, 4)
		require.EqualValues(t, 2, r.Stats().Done, "those that can be acked are")
		for i := range 20 {
			r.schedule(fmt.Sprint("near again ", i), time.Now())
			later(300 * time.Millisecond)
			require.EqualValues(t, 3+i, r.Stats().Done, "and are not asked for together with the others any more")
		}
		require.Contains(t, strings.Join(r.Problems(), "; "), "shard 1 of the store has left acks without an answer since")
		require.Contains(t, strings.Join(r.Problems(), "; "), "2 tasks have ended")
		half.away.Store(false)
		later(10 * time.Second)
		require.Empty(t, r.Problems())
		due, running := r.store.left()
		require.Zero(t, due+running)
		require.EqualValues(t, 24, r.Stats().Done)
		require.Zero(t, r.Stats().LeaseLost, "none was acked twice")
		require.Empty(t, r.mu.apart)
	})
}

// A shard that fails for a moment is asked again soon.
func TestAShardThatFailsForAMomentIsAskedAgainSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, half, _ := onHalfSinceClaimed(t, true, "far1", "near1")
		later(5 * time.Millisecond)
		half.away.Store(false)
		later(20 * time.Millisecond)
		require.EqualValues(t, 2, r.Stats().Done)
		require.Empty(t, r.mu.apart)
	})
}

// What has finished while a shard is asked apart for the last time is not forgotten, though nothing
// else finishes.
func TestWhatFinishesWhileItsShardIsAskedApartIsSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		go1, go2 := make(chan struct{}), make(chan struct{})
		r, half := onHalf(t, func(_ context.Context, task Task) error {
			if task.ID == "far1" {
				<-go1
			} else {
				<-go2
			}
			return nil
		})
		half.fails.Store(true)
		r.schedule("far1", time.Now())
		r.schedule("far2", time.Now())
		later(time.Second)
		half.away.Store(true)
		close(go1)
		later(5 * time.Millisecond)
		half.away.Store(false)
		acked := func() { close(go2); time.Sleep(10 * time.Millisecond) }
		half.acked.Store(&acked)
		later(100 * time.Millisecond)
		require.Nil(t, half.acked.Load())
		require.EqualValues(t, 2, r.Stats().Done)
		require.Empty(t, r.mu.apart)
	})
}

// A shard that leaves many without an answer leaves room for the others.
func TestWhatIsAskedApartLeavesRoomForTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var far atomic.Int64
		r, half := onHalf(t, func(_ context.Context, task Task) error {
			if strings.HasPrefix(task.ID, "far") {
				far.Add(1)
			}
			return nil
		}, func(c *Config) { c.Workers = 1 })
		half.acksOnly.Store(true)
		half.away.Store(true)
		const many = unsettledPerWorker + 5
		for i := range many {
			r.schedule(fmt.Sprint("far", i), time.Now())
		}
		later(10 * time.Second)
		require.EqualValues(t, many, far.Load(), "they are claimed, and run")
		for i := range 3 * unsettledPerWorker {
			r.schedule(fmt.Sprint("near", i), time.Now())
		}
		later(100 * time.Millisecond)
		require.EqualValues(t, 3*unsettledPerWorker, r.Stats().Done)
		half.away.Store(false)
		later(time.Minute)
		require.EqualValues(t, 3*unsettledPerWorker+many, r.Stats().Done)
	})
}

// What a shard that is away was not told is for Stop's last word.
func TestStopTellsAShardThatWasAwayWhatItLeftWithoutAnAnswer(t *testing.T) {
	for name, c := range map[string]struct{ back, fails bool }{
		"back": {back: true}, "away": {}, "failing": {fails: true}, "back from failing": {back: true, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, half, _ := onHalfSinceClaimed(t, c.fails, "far1", "near1", "far2", "near2")
				later(10 * time.Second)
				ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
				defer cancel()
				if c.back {
					half.away.Store(false)
				}
				err := r.Stop(ctx)
				require.Empty(t, r.mu.apart)
				require.Empty(t, r.mu.held)
				due, running := r.store.left()
				require.Zero(t, due)
				if c.back {
					require.NoError(t, err)
					require.Zero(t, running)
					return
				}
				require.ErrorContains(t, err, "did not take the last 2 answers")
				require.Equal(t, 2, running, "until their leases are over")
			})
		})
	}
}
