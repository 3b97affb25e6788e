package persist

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// The set against a sorted slice. Few distinct places and a growing phase before a shrinking
// one, so that blocks are split and emptied.
func TestSortedIsASortedSlice(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	var s sorted
	var want []Cursor
	for step := range 12_000 {
		c := Cursor{DueMS: rnd.Int64N(40), ID: fmt.Sprint(rnd.IntN(200))}
		at, found := slices.BinarySearchFunc(want, c, comparePlaces)
		grow := rnd.IntN(4) > 0
		if step > 8000 {
			grow = !grow
		}
		switch {
		case found && !grow:
			s.remove(c)
			want = slices.Delete(want, at, at+1)
		case !found && grow:
			s.insert(c)
			want = slices.Insert(want, at, c)
		case !found:
			s.remove(c) // does nothing
		}
		require.Equal(t, len(want), s.count)
		if step%100 > 0 {
			continue
		}
		requireBlocks(t, &s)
		require.True(t, slices.Equal(want, slices.Collect(s.after(Cursor{DueMS: -1}))))
		at, found = slices.BinarySearchFunc(want, c, comparePlaces)
		if found {
			at++
		}
		require.True(t, slices.Equal(want[at:], slices.Collect(s.after(c))), "after %v", c)
		if first, ok := s.first(); ok {
			require.Equal(t, want[0], first)
		}
	}
	for _, c := range slices.Clone(want) {
		s.remove(c)
	}
	require.Empty(t, s.blocks)
	require.Zero(t, s.count)
	_, ok := s.first()
	require.False(t, ok)
	require.Empty(t, slices.Collect(s.after(Cursor{})))
}

func requireBlocks(t *testing.T, s *sorted) {
	t.Helper()
	for _, b := range s.blocks {
		require.NotEmpty(t, b)
		require.LessOrEqual(t, len(b), maxBlock)
	}
}
