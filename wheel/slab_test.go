package wheel

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSlabGivesItsChunksBack(t *testing.T) {
	t.Parallel()
	seeds(t, 3, func(t *testing.T, rnd *rand.Rand) {
		var s slab
		var refs []ref
		take := func() {
			r, n := s.take()
			require.NotEqual(t, none, r)
			*n = node{id: "x"}
			refs = append(refs, r)
		}
		for range 100_000 {
			take()
		}
		require.NoError(t, s.audit())
		held := s.held
		rnd.Shuffle(len(refs), func(i, j int) { refs[i], refs[j] = refs[j], refs[i] })
		for _, r := range refs[1000:] {
			s.give(r)
		}
		refs = refs[:1000]
		require.NoError(t, s.audit())
		require.True(t, s.sparse())
		for range 50_000 {
			take()
		}
		require.LessOrEqual(t, s.held, held)
		for _, r := range refs {
			s.give(r)
		}
		require.NoError(t, s.audit())
		require.Zero(t, s.held)
		require.Zero(t, s.live)
	})
}

// Chunks come and go while trimming is under way.
func TestSlabTopmostIsInUse(t *testing.T) {
	t.Parallel()
	seeds(t, 5, func(t *testing.T, rnd *rand.Rand) {
		var s slab
		var refs []ref
		inUse := make(map[ref]bool)
		for range 200 {
			more := rnd.IntN(3 * chunkLen)
			if rnd.IntN(2) == 0 {
				for range more {
					r, n := s.take()
					*n = node{id: "x"}
					refs = append(refs, r)
					inUse[r] = true
				}
			} else {
				for range min(more, len(refs)) {
					i := rnd.IntN(len(refs))
					s.give(refs[i])
					delete(inUse, refs[i])
					refs[i] = refs[len(refs)-1]
					refs = refs[:len(refs)-1]
				}
			}
			for range rnd.IntN(20) {
				if s.sparse() {
					require.True(t, inUse[s.topmost()])
				}
			}
		}
		require.NoError(t, s.audit())
	})
}
