package persisttest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/persist"
)

func (b *bed) takeTurn(t *testing.T, owner string, lease time.Duration, force bool) (persist.Turn, time.Duration) {
	t.Helper()
	turn, left, err := b.TakeTurn(b.ctx, owner, lease, force)
	require.NoError(t, err)
	return turn, left
}

func (b *bed) endTurn(t *testing.T, owner string, rest time.Duration) bool {
	t.Helper()
	ended, err := b.EndTurn(b.ctx, owner, rest)
	require.NoError(t, err)
	return ended
}

// turns is who may reconcile: one of all, at a time.
var turns = []conformance{
	{"a turn that somebody works in is nobody else's, not even by force", func(t *testing.T, b *bed) {
		turn, left := b.takeTurn(t, "A", time.Hour, false)
		require.Equal(t, persist.TurnTaken, turn)
		require.Zero(t, left)
		for _, force := range []bool{false, true} {
			turn, left = b.takeTurn(t, "B", time.Hour, force)
			require.Equal(t, persist.TurnRefused, turn)
			require.InDelta(t, time.Hour, left, float64(time.Minute))
		}
		require.False(t, b.endTurn(t, "B", time.Hour))
	}},
	{"who has the turn keeps it by asking again", func(t *testing.T, b *bed) {
		b.takeTurn(t, "A", time.Minute, false)
		for _, force := range []bool{false, true} {
			turn, _ := b.takeTurn(t, "A", 2*time.Hour, force)
			require.Equal(t, persist.TurnKept, turn)
		}
		_, left := b.takeTurn(t, "B", time.Hour, false)
		require.InDelta(t, 2*time.Hour, left, float64(time.Minute))
	}},
	{"a turn that rests is taken by force alone", func(t *testing.T, b *bed) {
		b.takeTurn(t, "A", time.Hour, false)
		require.True(t, b.endTurn(t, "A", 2*time.Hour))
		require.False(t, b.endTurn(t, "A", 3*time.Hour), "it was ended")
		for _, owner := range []string{"A", "B"} {
			turn, left := b.takeTurn(t, owner, time.Hour, false)
			require.Equal(t, persist.TurnRefused, turn)
			require.InDelta(t, 2*time.Hour, left, float64(time.Minute))
		}
		turn, _ := b.takeTurn(t, "B", time.Hour, true)
		require.Equal(t, persist.TurnTaken, turn)
		turn, _ = b.takeTurn(t, "A", time.Hour, true)
		require.Equal(t, persist.TurnRefused, turn)
	}},
	{"a turn that is over is anybody's", func(t *testing.T, b *bed) {
		b.takeTurn(t, "A", 2*time.Millisecond, false)
		b.pass(t, 3)
		require.False(t, b.endTurn(t, "A", time.Hour), "too late")
		turn, _ := b.takeTurn(t, "B", time.Hour, false)
		require.Equal(t, persist.TurnTaken, turn)
		require.True(t, b.endTurn(t, "B", 2*time.Millisecond))
		b.pass(t, 3)
		turn, _ = b.takeTurn(t, "A", time.Hour, false)
		require.Equal(t, persist.TurnTaken, turn)
	}},
	{"a turn is no task", func(t *testing.T, b *bed) {
		b.takeTurn(t, "A", time.Hour, false)
		b.requireEmpty(t)
	}},
}
