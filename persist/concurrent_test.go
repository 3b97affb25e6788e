package persist_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/orderwheel/orderwheel/persist"
	"github.com/orderwheel/orderwheel/persist/persisttest"
	"github.com/stretchr/testify/require"
)

// Many callers at once: whatever the order was, each id ends in one place, and all of
// them can be worked off.
func TestConcurrentCallersLeaveEveryTaskInOnePlace(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		seed := persisttest.Seeds(t, 1)[0]
		t.Logf("ORDERWHEEL_SEED=%d (which fixes the operations, not their order)", seed)
		var wg sync.WaitGroup
		for caller := range 8 {
			wg.Go(func() {
				rnd := rand.New(rand.NewPCG(seed, uint64(caller)))
				for n := range 40 {
					if err := b.anything(bounded(t), rnd, fmt.Sprintf("c%d-%d", caller, n)); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()

		s := b.stored(t)
		for id := range s.Due {
			require.NotContains(t, s.Running, id)
			require.NotContains(t, s.Dead, id)
		}
		for id := range s.Dead {
			require.NotContains(t, s.Running, id)
			require.Contains(t, s.Reasons, id)
		}
		require.Len(t, s.Reasons, len(s.Dead))
		for id := range s.Running {
			require.Contains(t, s.Claims, id)
		}
		for id, record := range s.Claims {
			_, due := s.Due[id]
			_, running := s.Running[id]
			require.True(t, due || running, "%q has the record %q and stands nowhere", id, record)
		}

		for _, id := range oddIDs {
			do(t, b.client, "ZADD", keyRunning, "XX", 1, id) // all leases are over
		}
		_, err := b.Reap(t.Context(), 100)
		require.NoError(t, err)
		_, err = b.Requeue(t.Context(), oddIDs)
		require.NoError(t, err)
		for id := range b.stored(t).Due {
			b.scheduled(t, past, id)
			b.claimed(t, "end", time.Hour, id)
			_, err := b.Ack(t.Context(), []persist.Lease{{ID: id, Token: "end"}})
			require.NoError(t, err)
		}
		b.requireEmpty(t)
	})
}

// anything does one random thing to a few ids.
func (b bed) anything(ctx context.Context, rnd *rand.Rand, token string) error {
	list := make([]string, 1+rnd.IntN(4))
	for i := range list {
		list[i] = oddIDs[rnd.IntN(len(oddIDs))]
	}
	switch rnd.IntN(9) {
	case 8:
		dues := make([]persist.Due, len(list))
		for i, id := range list {
			dues[i] = persist.Due{ID: id, DueMS: rnd.Int64N(2 * past)}
		}
		_, err := b.Ensure(ctx, dues)
		return err
	case 3:
		if rnd.IntN(2) == 0 {
			_, err := b.Requeue(ctx, list)
			return err
		}
		_, err := b.Discard(ctx, list)
		return err
	case 0:
		_, err := b.Cancel(ctx, list)
		return err
	case 1:
		_, err := b.Reap(ctx, len(list))
		return err
	case 2, 4: // a run that ends in an ack, a retry or a burial
		claims, err := b.Claim(ctx, token, list, time.Duration(1+rnd.IntN(3))*time.Millisecond, rnd.IntN(3))
		if err != nil {
			return err
		}
		for _, c := range claims.Claims {
			l := persist.Lease{ID: c.ID, Token: token}
			switch rnd.IntN(4) {
			case 0:
				_, err = b.Ack(ctx, []persist.Lease{l})
			case 1:
				_, err = b.Bury(ctx, []persist.Burial{{Lease: l, Reason: token}})
			case 2:
				_, err = b.Renew(ctx, []persist.Lease{l}, time.Duration(1+rnd.IntN(3))*time.Millisecond)
			default:
				_, err = b.Retry(ctx, []persist.Retry{{Lease: l, DueMS: past}})
			}
			if err != nil {
				return err
			}
		}
		return nil
	default:
		dues := make([]persist.Due, len(list))
		for i, id := range list {
			dues[i] = persist.Due{ID: id, DueMS: rnd.Int64N(2 * past)}
		}
		return b.Schedule(ctx, dues)
	}
}
