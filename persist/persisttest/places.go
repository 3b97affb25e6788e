package persisttest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/persist"
)

// readDue reads all that is due in pages of limit; between two of them it calls meanwhile.
func (b *bed) readDue(t *testing.T, limit int, meanwhile func(persist.Page)) (list []persist.Due) {
	t.Helper()
	for page := (persist.Page{More: true}); page.More; {
		var err error
		page, err = b.Window(b.ctx, page.Next, persist.MaxDueMS, limit)
		require.NoError(t, err)
		require.LessOrEqual(t, len(page.Due), limit)
		list = append(list, page.Due...)
		require.LessOrEqual(t, len(list), 100_000, "it loops")
		if meanwhile != nil {
			meanwhile(page)
		}
	}
	return list
}

// readDead is readDue for the dead.
func (b *bed) readDead(t *testing.T, limit int, meanwhile func(persist.DeadPage)) (list []persist.Dead) {
	t.Helper()
	for page := (persist.DeadPage{More: true}); page.More; {
		var err error
		page, err = b.Dead(b.ctx, page.Next, limit)
		require.NoError(t, err)
		require.LessOrEqual(t, len(page.Dead), limit)
		list = append(list, page.Dead...)
		require.LessOrEqual(t, len(list), 100_000, "it loops")
		if meanwhile != nil {
			meanwhile(page)
		}
	}
	return list
}

// requireOnePlace fails unless each id that the store has stands in one place:
// Lookup, Window, Dead and Depth have to agree. ids are all that may be there.
func (b *bed) requireOnePlace(t *testing.T, ids ...string) {
	t.Helper()
	due := map[string]int64{}
	for _, d := range b.readDue(t, 700, nil) {
		require.NotContains(t, due, d.ID, "read twice")
		due[d.ID] = d.DueMS
	}
	dead := map[string]persist.Dead{}
	for _, d := range b.readDead(t, 700, nil) {
		require.NotContains(t, dead, d.ID, "read twice")
		dead[d.ID] = d
	}
	depth := b.depth(t)
	require.EqualValues(t, len(due), depth.Due, "due")
	require.EqualValues(t, len(dead), depth.Dead, "dead")

	running := 0
	for _, r := range b.lookup(t, ids...) {
		ms, isDue := due[r.ID]
		d, isDead := dead[r.ID]
		require.Equal(t, r.Status == persist.StatusDue, isDue, "%q is %v", r.ID, r.Status)
		require.Equal(t, r.Status == persist.StatusDead, isDead, "%q is %v", r.ID, r.Status)
		require.Equal(t, r.DueMS, ms, "%q", r.ID)
		delete(due, r.ID)
		delete(dead, r.ID)
		switch r.Status {
		case persist.StatusGone:
			require.Equal(t, persist.Record{ID: r.ID}, r)
		case persist.StatusRunning:
			running++
		case persist.StatusDead:
			require.Equal(t, persist.Dead{ID: r.ID, BuriedMS: r.BuriedMS, FirstDueMS: r.FirstDueMS, Attempt: r.Attempt, Reason: r.Reason}, d)
		}
	}
	require.EqualValues(t, running, depth.Running, "running")
	require.Empty(t, due, "due, and nobody knows them")
	require.Empty(t, dead, "dead, and nobody knows them")
}

// requireEmpty fails if a task is left.
func (b *bed) requireEmpty(t *testing.T) {
	t.Helper()
	require.Equal(t, persist.Depth{}, b.depth(t))
	require.Empty(t, b.readDue(t, 10, nil))
	require.Empty(t, b.readDead(t, 10, nil))
}
