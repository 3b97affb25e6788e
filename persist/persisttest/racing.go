package persisttest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/persist"
)

// racing is many owners at once. Each has a handle of its own where the bed has them.
var racing = []conformance{
	{"five owners claim each of many tasks once", func(t *testing.T, b *bed) { // case 39
		tasks, step := b.size(10_000, 1000), b.size(500, 50)
		all := names("x", tasks)
		b.schedule(t, past, all...)
		var mu sync.Mutex
		runs := make(map[string]int, tasks)
		b.owners(t, 5, func(n int, store persist.Store) error {
			// Each has seen all of them, and begins somewhere else.
			for i := range tasks / step {
				at := (i*step + n*step/5) % tasks
				mine := slices.Concat(all[at:min(at+step, tasks)], all[:max(0, at+step-tasks)])
				claims, err := store.Claim(b.ctx, fmt.Sprintf("owner%d-%d", n, i), mine, time.Hour, 0)
				if err != nil {
					return err
				}
				mu.Lock()
				for _, c := range claims.Claims {
					if c.State == persist.Claimed {
						runs[c.ID]++
					}
				}
				mu.Unlock()
			}
			return nil
		})
		require.Len(t, runs, tasks)
		for id, n := range runs {
			require.Equal(t, 1, n, id)
		}
		require.Equal(t, persist.Depth{Running: int64(tasks)}, b.depth(t))
	}},
	{"of a cancel and a claim of one task, one wins", func(t *testing.T, b *bed) {
		tasks := b.size(1000, 200)
		all := names("x", tasks)
		b.schedule(t, past, all...)
		claimed, cancelled := make([]bool, tasks), make([]bool, tasks)
		b.owners(t, 2, func(n int, store persist.Store) error {
			for i := 0; i < tasks; i += 10 {
				if n == 0 {
					claims, err := store.Claim(b.ctx, token, all[i:i+10], time.Hour, 0)
					if err != nil {
						return err
					}
					for k, c := range claims.Claims {
						claimed[i+k] = c.State == persist.Claimed
					}
					continue
				}
				outcomes, err := store.Cancel(b.ctx, all[i:i+10])
				if err != nil {
					return err
				}
				for k, o := range outcomes {
					cancelled[i+k] = o == persist.Cancelled
				}
			}
			return nil
		})
		for i := range all {
			require.NotEqual(t, claimed[i], cancelled[i], all[i])
		}
	}},
	{"of a renewal and a reap of one lease, one wins", func(t *testing.T, b *bed) {
		tasks := b.size(500, 100)
		all := names("x", tasks)
		b.schedule(t, past, all...)
		b.claim(t, token, time.Millisecond, all...)
		b.pass(t, 2)
		reaped, renewed := map[string]bool{}, map[string]bool{}
		b.owners(t, 2, func(n int, store persist.Store) error {
			for i := 0; i < tasks; i += 10 {
				if n == 0 {
					list, err := store.Reap(b.ctx, 10)
					if err != nil {
						return err
					}
					for _, d := range list {
						reaped[d.ID] = true
					}
					continue
				}
				yes, err := store.Renew(b.ctx, leases(token, all[tasks-i-10:tasks-i]...), time.Hour)
				if err != nil {
					return err
				}
				for k, ok := range yes {
					renewed[all[tasks-i-10+k]] = ok
				}
			}
			return nil
		})
		for _, id := range all {
			require.NotEqual(t, reaped[id], renewed[id], id)
		}
	}},
	{"others see all of a chunk or nothing", func(t *testing.T, b *bed) {
		all := b.near(names("x", persist.MaxBatch)...)
		b.schedule(t, past, all...)
		b.owners(t, 3, func(n int, store persist.Store) error {
			for i := range b.size(20, 3) {
				if n == 0 {
					list := make([]persist.Due, len(all))
					for k, id := range all {
						list[k] = persist.Due{ID: id, DueMS: past + int64(i)}
					}
					if err := store.Schedule(b.ctx, list); err != nil {
						return err
					}
					continue
				}
				records, err := store.Lookup(b.ctx, all)
				if err != nil {
					return err
				}
				for _, r := range records {
					if r.DueMS != records[0].DueMS {
						return fmt.Errorf("%s is due at %d, and %s at %d", r.ID, r.DueMS, records[0].ID, records[0].DueMS)
					}
				}
			}
			return nil
		})
	}},
	{"many owners doing anything leave every task in one place", func(t *testing.T, b *bed) {
		seed := Seeds(t, 1)[0]
		t.Logf("ORDERWHEEL_SEED=%d (which fixes the operations, not their order)", seed)
		nowMS := b.nowMS(t)
		b.owners(t, 8, func(n int, store persist.Store) error {
			w := &walker{
				bed: &bed{Store: store, ctx: b.ctx}, rnd: rand.New(rand.NewPCG(seed, uint64(n))),
				model: model{}, ids: oddIDs, tokens: []string{"none"}, nowMS: nowMS,
			}
			for range b.size(60, 15) {
				if _, err := w.operation().store(); err != nil {
					return err
				}
			}
			return nil
		})
		b.requireOnePlace(t, oddIDs...)
		b.cancel(t, oddIDs...)
		b.discard(t, oddIDs...)
		depth := b.depth(t)
		require.Zero(t, depth.Due+depth.Dead)
	}},
}

// owners runs n owners at once and waits for them.
func (b *bed) owners(t *testing.T, n int, work func(n int, store persist.Store) error) {
	t.Helper()
	var wg sync.WaitGroup
	for i := range n {
		store := b.Store
		if b.Owner != nil {
			store = b.Owner(t)
		}
		wg.Go(func() {
			if err := work(i, store); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
}
