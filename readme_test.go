package orderwheel_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The code that the README shows is the code that the Example runs.
func TestTheReadmeShowsTheExample(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	_, shown, ok := strings.Cut(string(readme), "```go\n")
	require.True(t, ok)
	shown, _, _ = strings.Cut(shown, "```")

	source, err := os.ReadFile("example_test.go")
	require.NoError(t, err)
	_, embedded, ok := strings.Cut(string(source), "// Embed:\n")
	require.True(t, ok)
	embedded, _, ok = strings.Cut(embedded, "\t// Embedded.")
	require.True(t, ok)
	require.Equal(t, strings.ReplaceAll("\n"+embedded, "\n\t", "\n"), "\n"+shown)
}
