package persist_test

import (
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/persist"
	"github.com/orderwheel/orderwheel/persist/persisttest"
)

// What persisttest does not ask of every store: what is promised of Memory alone.

func TestMemoryWarnsThatNothingIsDurable(t *testing.T) {
	t.Parallel()
	warnings, err := persist.NewMemory(nil).Check(t.Context())
	require.NoError(t, err)
	require.Len(t, warnings, 1)
	require.Contains(t, warnings[0], "loses all")
}

func TestMemoryWithoutAClockUsesThatOfTheMachine(t *testing.T) {
	t.Parallel()
	s, err := persist.NewMemory(nil).Now(t.Context())
	require.NoError(t, err)
	require.True(t, s.Sent.UnixMilli() <= s.StoreUS/1000 && s.StoreUS/1000 <= s.Received.UnixMilli())
}

// Half of them are cancelled while they are read. A million where ORDERWHEEL_LONG=1.
func TestMemoryReadsEachOfManyTasksOnce(t *testing.T) {
	t.Parallel()
	tasks := 30_000
	if os.Getenv("ORDERWHEEL_LONG") == "1" {
		tasks = 1_000_000
	}
	seed := persisttest.Seeds(t, 1)[0]
	t.Logf("ORDERWHEEL_SEED=%d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	ctx := t.Context()
	m := persist.NewMemory(func() int64 { return past })
	all := ids("x", tasks)
	dues := make([]persist.Due, tasks)
	for i, at := range rnd.Perm(tasks) {
		dues[i] = persist.Due{ID: all[at], DueMS: future + rnd.Int64N(30*60*1000)}
	}
	require.NoError(t, m.Schedule(ctx, dues))

	read := make(map[string]bool, tasks)
	last := persist.Due{}
	for page := (persist.Page{More: true}); page.More; {
		var err error
		page, err = m.Window(ctx, page.Next, persist.MaxDueMS, 5000)
		require.NoError(t, err)
		var done []string
		for i, d := range page.Due {
			require.False(t, read[d.ID], "%s was read twice", d.ID)
			require.LessOrEqual(t, last.DueMS, d.DueMS)
			read[d.ID], last = true, d
			if i%2 == 0 {
				done = append(done, d.ID)
			}
		}
		outcomes, err := m.Cancel(ctx, done)
		require.NoError(t, err)
		require.NotContains(t, outcomes, persist.NotFound)
	}
	require.Len(t, read, tasks)
	depth, err := m.Depth(ctx)
	require.NoError(t, err)
	require.EqualValues(t, tasks/2, depth.Due)
}
