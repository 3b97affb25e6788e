package persist_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/orderwheel/orderwheel/persist"
	"github.com/orderwheel/orderwheel/persist/persisttest"
	"github.com/stretchr/testify/require"
)

// Many pending tasks on a real server: each is read once, and takes little room.

// veryMany is how many tasks stand for very many: a million where ORDERWHEEL_LONG=1.
func veryMany() int {
	if os.Getenv("ORDERWHEEL_LONG") == "1" {
		return 1_000_000
	}
	return 100_000
}

// numbered makes n ids of 19 bytes, in order.
func numbered(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("20260102%011d", i)
	}
	return list
}

// scheduleAll makes all of them due, in an order of its own.
func (b bed) scheduleAll(t *testing.T, rnd *rand.Rand, all []string, dueMS func(i int) int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // only when it hangs
	defer cancel()
	list := make([]persist.Due, len(all))
	for at, i := range rnd.Perm(len(all)) {
		list[at] = persist.Due{ID: all[i], DueMS: dueMS(i)}
	}
	require.NoError(t, b.Schedule(ctx, list))
}

// readsOfAll reads all pages and counts, for each of all, how often it was read; between
// two pages it calls meanwhile with the number of the page.
func (b bed) readsOfAll(t *testing.T, all []string, limit int, dueMS func(i int) int64, meanwhile func(page int)) []uint8 {
	t.Helper()
	reads := make([]uint8, len(all))
	var last persist.Due
	n := 0
	for page := (persist.Page{More: true}); page.More; n++ {
		var err error
		page, err = b.Window(bounded(t), page.Next, persist.MaxDueMS, limit)
		require.NoError(t, err)
		require.LessOrEqual(t, len(page.Due), limit)
		for _, d := range page.Due {
			i, err := strconv.Atoi(strings.TrimPrefix(d.ID, "20260102"))
			require.NoError(t, err)
			require.Equal(t, persist.Due{ID: all[i], DueMS: dueMS(i)}, d)
			require.True(t, last.DueMS < d.DueMS || last.DueMS == d.DueMS && last.ID < d.ID, "%v after %v", d, last)
			reads[i]++
			last = d
		}
		require.LessOrEqual(t, n, 2*len(all)/limit+2, "it loops")
		meanwhile(n)
	}
	return reads
}

// requireReadOnce reads all of them: each once. Then it reads them again while another owner
// cancels a tenth, behind the cursor and ahead of it: each that stays once, and those that go at
// most once.
func (b bed) requireReadOnce(t *testing.T, rnd *rand.Rand, all []string, limit int, dueMS func(i int) int64) {
	t.Helper()
	reads := b.readsOfAll(t, all, limit, dueMS, func(int) {})
	require.NotContains(t, reads, uint8(0), "one was not read")
	for i, n := range reads {
		require.EqualValues(t, 1, n, all[i])
	}

	goes := rnd.Perm(len(all))[:len(all)/10]
	pages := len(all) / limit
	batches := slices.Collect(slices.Chunk(goes, max(1, len(goes)/pages)))
	work := make(chan []int)
	canceller := newStore(t, b.server.Client(t))
	var other sync.WaitGroup
	other.Go(func() {
		for batch := range work {
			var list []string
			for _, i := range batch {
				list = append(list, all[i])
			}
			outcomes, err := canceller.Cancel(bounded(t), list)
			if err != nil || slices.ContainsFunc(outcomes, func(o persist.CancelOutcome) bool { return o != persist.Cancelled }) {
				t.Error(outcomes, err)
			}
		}
	})
	reads = b.readsOfAll(t, all, limit, dueMS, func(int) {
		if len(batches) > 0 { // once the one before is done; this one is beside the next page
			work <- batches[0]
			batches = batches[1:]
		}
	})
	for _, batch := range batches {
		work <- batch
	}
	close(work)
	other.Wait()

	gone := make([]bool, len(all))
	for _, i := range goes {
		gone[i] = true
	}
	missed := 0
	for i, n := range reads {
		if gone[i] && n == 0 {
			missed++
			continue
		}
		require.EqualValues(t, 1, n, all[i])
	}
	require.Positive(t, missed, "none was cancelled ahead of the cursor")
	require.Less(t, missed, len(goes), "none was cancelled behind the cursor")

	reads = b.readsOfAll(t, all, limit, dueMS, func(int) {})
	for i, n := range reads {
		require.Equal(t, gone[i], n == 0, all[i])
	}
	depth, err := b.Depth(bounded(t))
	require.NoError(t, err)
	require.Equal(t, persist.Depth{Due: int64(len(all) - len(goes))}, depth)
}

func newRand(t *testing.T) *rand.Rand {
	t.Helper()
	seed := persisttest.Seeds(t, 1)[0]
	t.Logf("ORDERWHEEL_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

func TestFiftyThousandTasksOfOneMillisecondAreReadOnce(t *testing.T) {
	t.Parallel()
	b, rnd, all := setupReal(t), newRand(t), numbered(50_000)
	dueMS := func(int) int64 { return future }
	b.scheduleAll(t, rnd, all, dueMS)
	b.requireReadOnce(t, rnd, all, persist.MaxBatch, dueMS)
}

func TestAMillionTasksOfHalfAnHourAreReadOnce(t *testing.T) {
	t.Parallel()
	b, rnd, all := setupReal(t), newRand(t), numbered(veryMany())
	after := make([]int64, len(all))
	for i := range after {
		after[i] = rnd.Int64N(30 * 60 * 1000)
	}
	dueMS := func(i int) int64 { return future + after[i] }
	b.scheduleAll(t, rnd, all, dueMS)
	b.requireReadOnce(t, rnd, all, 5*persist.MaxBatch, dueMS)
}

func TestAPendingTaskTakesAtMost150BytesOfRedis(t *testing.T) {
	t.Parallel()
	b, rnd, all := setupReal(t), newRand(t), numbered(veryMany())
	require.Len(t, all[0], 19)
	used := func() int64 { // without the buffers of a client that has written
		for _, field := range strings.Fields(b.server.Client(t).Info(t.Context(), "memory").Val()) {
			if value, ok := strings.CutPrefix(field, "used_memory:"); ok {
				n, err := strconv.ParseInt(value, 10, 64)
				require.NoError(t, err)
				return n
			}
		}
		require.Fail(t, "INFO has no used_memory")
		return 0
	}
	require.NoError(t, b.client.Ping(t.Context()).Err())
	before := used()
	b.scheduleAll(t, rnd, all, func(int) int64 { return future + rnd.Int64N(30*60*1000) })
	require.NoError(t, b.Close(bounded(t)))
	each := float64(used()-before) / float64(len(all))
	t.Logf("%.1f B of Redis memory a task, of %d", each, len(all))
	require.LessOrEqual(t, each, 150.0)
	require.Greater(t, each, 19.0, "an id alone")
	depth, err := b.Depth(bounded(t))
	require.NoError(t, err)
	require.Equal(t, persist.Depth{Due: int64(len(all))}, depth)
}
