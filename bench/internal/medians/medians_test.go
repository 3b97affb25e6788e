package medians

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReadPassesOnEachFigure(t *testing.T) {
	t.Parallel()
	const text = "goos: linux\nBenchmarkX/a=b-2  100  7 ns/op  1.5 x-ms\nBenchmarkY\nPASS\nok"
	var got []string
	var out strings.Builder
	require.NoError(t, Read(strings.NewReader(text), &out, func(name, unit string, v float64) {
		got = append(got, fmt.Sprint(name, " ", v, " ", unit))
	}))
	require.Equal(t, []string{"X/a=b 7 ns/op", "X/a=b 1.5 x-ms"}, got)
	require.Equal(t, text, out.String())
}

func TestReadWantsThemToPass(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "BenchmarkX-2 1 7 ns/op", "ok\n--- FAIL: BenchmarkX", "FAIL\nok"} {
		require.Error(t, Read(strings.NewReader(text), io.Discard, func(string, string, float64) {}), "%q", text)
	}
}

func TestOf(t *testing.T) {
	t.Parallel()
	require.EqualValues(t, 2, Of([]float64{9, 1, 2}))
	require.EqualValues(t, 1.5, Of([]float64{2, 1}))
}
