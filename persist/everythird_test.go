package persist_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/orderwheel/orderwheel/internal/faultproxy"
	"github.com/orderwheel/orderwheel/persist"
	"github.com/orderwheel/orderwheel/persist/persisttest"
	"github.com/stretchr/testify/require"
)

// Several owners work on the same thousands of tasks, and every third reply is
// lost after Redis has executed the call. Nothing of it may show in the answers.

const (
	owners  = 4
	batchOf = 60 // ids of one call
)

// crew is the owners and what they know together.
type crew struct {
	bed
	proxy *proxy
	seed  uint64
	ids   []string
	tasks map[string]*knowledge // by id; the map itself does not change
}

// knowledge is what the owners saw of one task.
type knowledge struct {
	owner   atomic.Int32 // who runs it now, from 1; 0: nobody
	runs    atomic.Int32 // claims answered Claimed
	attempt atomic.Int32 // of the last of them
}

func newCrew(t *testing.T, n int) *crew {
	t.Helper()
	b, p := behindProxy(t, setupReal(t))
	c := &crew{bed: b, proxy: p, seed: persisttest.Seeds(t, 1)[0], ids: ids("task", n)}
	t.Logf("ORDERWHEEL_SEED=%d (which fixes the operations, not their order)", c.seed)
	c.forget()
	p.decide(faultproxy.Every(3, lostAnswer))
	return c
}

// forget begins anew with the tasks that nobody has seen.
func (c *crew) forget() {
	c.tasks = make(map[string]*knowledge, len(c.ids))
	for _, id := range c.ids {
		c.tasks[id] = new(knowledge)
	}
}

// owner is one of them, with a client and a store of its own.
type owner struct {
	*crew
	*persist.Redis
	n      int32
	rnd    *rand.Rand
	tokens int
}

// work has all owners do the same at once, and fails the test with the first error of each.
func (c *crew) work(t *testing.T, what func(o *owner) error) {
	t.Helper()
	var wg sync.WaitGroup
	for n := range owners {
		o := &owner{crew: c, Redis: newStore(t, c.proxy.client(t)), n: int32(n + 1), rnd: rand.New(rand.NewPCG(c.seed, uint64(n)))}
		wg.Go(func() {
			if err := what(o); err != nil {
				t.Errorf("owner %d: %v", o.n, err)
			}
		})
	}
	wg.Wait()
	require.False(t, t.Failed(), "see above")
	require.Positive(t, c.proxy.Counts().DroppedReplies)
}

// share is the owner's own part of ids, in batches.
func (o *owner) share(ids []string) (batches [][]string) {
	var own []string
	for i, id := range ids {
		if int32(i%owners)+1 == o.n {
			own = append(own, id)
		}
	}
	return slices.Collect(slices.Chunk(own, batchOf))
}

// any is a batch of ids of all.
func (o *owner) any() []string {
	list := make([]string, batchOf)
	for i, at := range o.rnd.Perm(len(o.ids))[:batchOf] {
		list[i] = o.ids[at]
	}
	return list
}

func dues(ids []string, ms int64) []persist.Due {
	list := make([]persist.Due, len(ids))
	for i, id := range ids {
		list[i] = persist.Due{ID: id, DueMS: ms}
	}
	return list
}

func (o *owner) scheduleShare(t *testing.T, ids []string, ms int64) error {
	for _, batch := range o.share(ids) {
		if err := o.Redis.Schedule(bounded(t), dues(batch, ms)); err != nil {
			return err
		}
	}
	return nil
}

// run claims a batch, checks what it got, and settles it: again says which to
// retry, at once; the others are acknowledged. It returns what was said to that.
func (o *owner) run(t *testing.T, batch []string, again func(persist.Claim) bool) ([]persist.Settlement, error) {
	o.tokens++
	token := fmt.Sprintf("owner%d-%d", o.n, o.tokens)
	got, err := o.Redis.Claim(bounded(t), token, batch, time.Hour, 0)
	if err != nil {
		return nil, err
	}
	var acks []persist.Lease
	var retries []persist.Retry
	for _, claim := range got.Claims {
		if claim.State != persist.Claimed {
			continue
		}
		if err := o.begin(claim); err != nil {
			return nil, err
		}
		lease := persist.Lease{ID: claim.ID, Token: token}
		if again(claim) {
			retries = append(retries, persist.Retry{Lease: lease, DueMS: past})
		} else {
			acks = append(acks, lease)
		}
		o.tasks[claim.ID].owner.Store(0) // before Redis knows: then another may claim it
	}
	if _, err := o.Redis.Retry(bounded(t), retries); err != nil {
		return nil, err
	}
	return o.Redis.Ack(bounded(t), acks)
}

// finish is run where nobody schedules or cancels meanwhile: what is acknowledged
// is settled, also by a copy whose answer was lost. It returns how many.
func (o *owner) finish(t *testing.T, batch []string, again func(persist.Claim) bool) (int, error) {
	acked, err := o.run(t, batch, again)
	for _, s := range acked {
		if s.State != persist.Settled {
			return 0, fmt.Errorf("the ack of %q answered %d", s.ID, s.State)
		}
	}
	return len(acked), err
}

// begin checks that nobody else runs the task, and that no claim counted more than once.
func (o *owner) begin(claim persist.Claim) error {
	k := o.tasks[claim.ID]
	if !k.owner.CompareAndSwap(0, o.n) {
		return fmt.Errorf("owner %d runs %q already", k.owner.Load(), claim.ID)
	}
	k.attempt.Store(int32(claim.Attempt))
	if runs := k.runs.Add(1); claim.Attempt < 1 || claim.Attempt > int(runs) {
		return fmt.Errorf("%q is at attempt %d in its run %d", claim.ID, claim.Attempt, runs)
	}
	return nil
}

// requireOnePlace checks that each id stands in due or running or nowhere, and has
// a record only where the table says so.
func (c *crew) requireOnePlace(t *testing.T) places {
	t.Helper()
	p := places{Due: c.scores(t, keyDue), Running: c.scores(t, keyRunning)}
	var err error
	p.Claims, err = c.client.HGetAll(t.Context(), keyClaims).Result()
	require.NoError(t, err)
	for id := range p.Running {
		require.NotContains(t, p.Due, id)
		require.Contains(t, p.Claims, id)
	}
	for id := range p.Claims {
		require.True(t, p.Due[id] != 0 || p.Running[id] != 0, "%q has a record and stands nowhere", id)
	}
	return p
}

// places is where the tasks stand, read in three calls: the scores of these
// tests have few digits.
type places struct {
	Due, Running map[string]float64
	Claims       map[string]string
}

func (c *crew) scores(t *testing.T, key string) map[string]float64 {
	t.Helper()
	list, err := c.client.ZRangeWithScores(t.Context(), key, 0, -1).Result()
	require.NoError(t, err)
	m := make(map[string]float64, len(list))
	for _, z := range list {
		m[z.Member.(string)] = z.Score
	}
	return m
}

func TestWithEveryThirdReplyLostEachTaskIsRunAndCountedAsAsked(t *testing.T) {
	t.Parallel()
	const runs = 3
	c := newCrew(t, 3000)
	c.work(t, func(o *owner) error { return o.scheduleShare(t, c.ids, past) })
	require.Len(t, c.requireOnePlace(t).Due, len(c.ids))
	again := func(claim persist.Claim) bool { return claim.Attempt < runs }
	// All owners try to claim all of them: as many as there are runs to do, and some more.
	c.work(t, func(o *owner) error {
		for range len(c.ids) / batchOf {
			if _, err := o.finish(t, o.any(), again); err != nil {
				return err
			}
		}
		return nil
	})
	require.Empty(t, c.requireOnePlace(t).Running, "every claim was settled")
	// What is left, each owner its share.
	for range runs {
		c.work(t, func(o *owner) error {
			for _, batch := range o.share(c.ids) {
				if _, err := o.finish(t, batch, again); err != nil {
					return err
				}
			}
			return nil
		})
	}
	for id, k := range c.tasks {
		require.EqualValues(t, runs, k.runs.Load(), id)
		require.EqualValues(t, runs, k.attempt.Load(), id)
	}
	c.requireEmpty(t)
}

func TestWithEveryThirdReplyLostACancelRemovesWhatItNames(t *testing.T) {
	t.Parallel()
	c := newCrew(t, 2000)
	c.work(t, func(o *owner) error { return o.scheduleShare(t, c.ids, past) })
	c.forget()
	c.work(t, func(o *owner) error {
		for _, batch := range o.share(c.ids) {
			got, err := o.Redis.Cancel(bounded(t), batch)
			if err != nil {
				return err
			}
			for i, id := range batch {
				if got[i] != persist.Cancelled {
					return fmt.Errorf("the cancel of %q answered %v", id, got[i])
				}
			}
		}
		return nil
	})
	c.requireEmpty(t)
}

func TestWithEveryThirdReplyLostNoTaskIsLostInTheThrong(t *testing.T) {
	t.Parallel()
	c := newCrew(t, 2000)
	c.work(t, func(o *owner) (err error) {
		for range 60 {
			batch := o.any()
			switch o.rnd.IntN(5) {
			case 0:
				_, err = o.Redis.Cancel(bounded(t), batch)
			case 1, 2:
				err = o.Redis.Schedule(bounded(t), dues(batch, []int64{past, future}[o.rnd.IntN(2)]))
			default:
				_, err = o.run(t, batch, func(persist.Claim) bool { return o.rnd.IntN(2) == 0 })
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	require.Empty(t, c.requireOnePlace(t).Running, "every claim was settled")

	// Whatever became of them: half are cancelled, half are scheduled, and it is so.
	gone, due := c.ids[:1000], c.ids[1000:]
	c.work(t, func(o *owner) error {
		for _, batch := range o.share(gone) {
			if _, err := o.Redis.Cancel(bounded(t), batch); err != nil {
				return err
			}
		}
		return o.scheduleShare(t, due, past)
	})
	s := c.requireOnePlace(t)
	require.Empty(t, s.Running)
	require.Empty(t, s.Claims, "they start afresh")
	require.Len(t, s.Due, len(due))
	for _, id := range due {
		require.EqualValues(t, past, s.Due[id], id)
	}
	c.forget()
	var acked atomic.Int64
	c.work(t, func(o *owner) error {
		for _, batch := range o.share(c.ids) {
			n, err := o.finish(t, batch, func(persist.Claim) bool { return false })
			if err != nil {
				return err
			}
			acked.Add(int64(n))
		}
		return nil
	})
	require.EqualValues(t, len(due), acked.Load())
	c.requireEmpty(t)
}
