package wheel

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// indexModel drives an index and a map alike. The node numbers are the keys,
// and hash is any function of them.
type indexModel struct {
	index index
	want  map[ref]bool
	hash  func(ref) uint32
}

func (m *indexModel) add(r ref) {
	m.index.prepare()
	t := m.index.tableOf(m.hash(r))
	t.add(entry{m.hash(r), r})
	m.want[r] = true
}

func (m *indexModel) remove(r ref) {
	t := m.index.tableOf(m.hash(r))
	t.remove(t.find(entry{m.hash(r), r}))
	m.index.tidy(1)
	delete(m.want, r)
}

func (m *indexModel) check(t *testing.T) {
	t.Helper()
	require.NoError(t, m.index.audit(len(m.want)))
	for r := range m.want {
		tab := m.index.tableOf(m.hash(r))
		require.Equal(t, r, tab.at(tab.find(entry{m.hash(r), r})).ref)
	}
}

func TestIndexGrowsAndShrinksAndForgetsNothing(t *testing.T) {
	t.Parallel()
	seeds(t, 3, func(t *testing.T, rnd *rand.Rand) {
		salt := rnd.Uint32()
		m := &indexModel{index: newIndex(), want: map[ref]bool{}, hash: func(r ref) uint32 {
			return (uint32(r)*2654435769 + salt) * 0x85ebca6b
		}}
		const n = 20_000
		for r := ref(1); r <= n; r++ {
			m.add(r)
			if r%7 == 0 {
				m.remove(r / 7 * 5)
			}
			if r%1000 == 0 {
				m.check(t)
			}
		}
		require.Greater(t, m.index.cur.size, uint32(n/2))
		for r := range m.want {
			m.remove(r)
			if len(m.want)%1000 == 0 {
				m.check(t)
			}
		}
		for m.index.resizing() {
			m.index.sweep()
		}
		require.EqualValues(t, minSize, m.index.cur.size)
	})
}

// Ids whose hashes collide cost time, not correctness, also across the end of
// the table.
func TestIndexBearsCollidingHashes(t *testing.T) {
	t.Parallel()
	for name, hash := range map[string]func(ref) uint32{
		"all alike":  func(ref) uint32 { return 1 << 31 },
		"all last":   func(ref) uint32 { return 1<<32 - 1 },
		"two places": func(r ref) uint32 { return uint32(r%2) * (1<<32 - 1) },
		"ascending":  func(r ref) uint32 { return uint32(r) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &indexModel{index: newIndex(), want: map[ref]bool{}, hash: hash}
			const n = 3000 // more than minSize holds: it is resized in between
			for r := ref(1); r <= n; r++ {
				m.add(r)
			}
			m.check(t)
			for r := ref(2); r <= n; r += 2 {
				m.remove(r)
			}
			m.check(t)
			for r := ref(2); r <= n; r += 2 {
				m.add(r)
			}
			for r := ref(1); r <= n; r++ {
				m.remove(r)
			}
			m.check(t)
		})
	}
}

// Ids that come and go at a constant number leave no dead places behind that would
// make the table ever fuller.
func TestIndexBuriesWhatIsDead(t *testing.T) {
	t.Parallel()
	m := &indexModel{index: newIndex(), want: map[ref]bool{}, hash: func(r ref) uint32 { return uint32(r) * 2654435769 }}
	const n = 10_000
	for r := ref(1); r <= n; r++ {
		m.add(r)
	}
	var size uint32
	for r := ref(n + 1); r <= 20*n; r++ {
		m.remove(r - n)
		m.add(r)
		if r <= 3*n { // room for the dead may take one resize
			size = m.index.cur.size
		} else {
			require.False(t, m.index.resizing(), "after %d", r)
		}
		if r%n == 0 {
			m.check(t)
		}
	}
	require.Equal(t, size, m.index.cur.size)
}

// No single operation pays for a resize of the whole.
func TestIndexIsResizedAFewPlacesAtATime(t *testing.T) {
	t.Parallel()
	m := &indexModel{index: newIndex(), want: map[ref]bool{}, hash: func(r ref) uint32 { return uint32(r) * 2654435769 }}
	resizes := 0
	for r := ref(1); r <= 200_000; r++ {
		before, resizing := m.index.swept, m.index.resizing()
		m.add(r)
		switch after := m.index.swept; {
		case resizing && m.index.resizing():
			require.Less(t, after-before, uint32(1000), "places swept by one operation")
		case resizing:
			resizes++
		}
	}
	require.Greater(t, resizes, 10)
}
