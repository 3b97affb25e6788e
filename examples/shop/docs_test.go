package main

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/internal/redistest"
)

// shell runs a line of the docs, against the app at url, and gives what it prints.
func shell(t *testing.T, url, line string) string {
	t.Helper()
	if _, err := exec.LookPath("curl"); err != nil && os.Getenv("ORDERWHEEL_REQUIRE_SERVERS") != "1" {
		t.Skip("SKIPPED, NOT TESTED: curl is not installed")
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", strings.ReplaceAll(line, "localhost:8080", strings.TrimPrefix(url, "http://")))
	out, err := cmd.Output()
	require.NoError(t, err, line)
	return string(out)
}

// blocks are the code blocks of a page in a language.
func blocks(t *testing.T, page, language string) (blocks []string) {
	t.Helper()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	for rest := string(text); ; {
		_, after, ok := strings.Cut(rest, "```"+language+"\n")
		if !ok {
			return blocks
		}
		block, more, ok := strings.Cut(after, "```")
		require.True(t, ok, page)
		blocks, rest = append(blocks, block), more
	}
}

// args are the flags of a line that starts a shop.
func args(line string) (flags []string, ok bool) {
	rest, ok := strings.CutPrefix(line, "go run ./examples/shop")
	return strings.Fields(rest), ok
}

var instant = regexp.MustCompile(`"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"`)

func TestTheRequestsOfTheReadmeAreAnsweredAsItShows(t *testing.T) {
	t.Parallel()
	start, ok := args(strings.TrimSpace(blocks(t, "README.md", "sh")[0]))
	require.True(t, ok)
	a := open(t, t.TempDir(), start...)
	console := blocks(t, "README.md", "console")
	require.Len(t, console, 1)
	commands := strings.Split(console[0], "$ ")[1:]
	require.Greater(t, len(commands), 10)
	for _, c := range commands {
		line, want, _ := strings.Cut(c, "\n")
		got := shell(t, a.url, line)
		require.Equal(t, instant.ReplaceAllString(want, `"AN INSTANT"`), instant.ReplaceAllString(got, `"AN INSTANT"`), line)
	}
}

func TestEachCommandOfTheGuideRuns(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	dir := t.TempDir()
	var a *testApp
	starts, asks := 0, 0
	for _, block := range blocks(t, "../../docs/moving.md", "sh") {
		for line := range strings.Lines(block) {
			line = strings.TrimSpace(line)
			flags, ok := args(strings.NewReplacer("localhost:6379", server.Addr(), "-db moving.db", "").Replace(line))
			if !ok {
				require.NotEmpty(t, shell(t, a.url, line), line)
				asks++
				continue
			}
			if a != nil {
				a.stop()
			}
			a = open(t, dir, flags...)
			require.Equal(t, true, a.get("/healthz")["ok"], line)
			starts++
		}
	}
	require.Equal(t, 6, starts)
	require.Equal(t, 5, asks)
}
