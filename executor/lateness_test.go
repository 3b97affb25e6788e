package executor

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatBeganMoreThanFiveMinutesLateIsCounted(t *testing.T) {
	t.Parallel()
	var h histogram
	h.add(300_000)
	require.Zero(t, h.snapshot().OverFiveMinutes())
	h.add(300_001)
	h.add(1 << 40)
	require.EqualValues(t, 2, h.snapshot().OverFiveMinutes())
	require.Zero(t, Stats{}.Lateness.OverFiveMinutes(), "nor does it panic")
}
