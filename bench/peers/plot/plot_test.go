package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const text = `{"Scale": 10, "Orders": 100, "Rate": 50, "Rows": [
	{"Name": "absent"},
	{"Name": "slow/1s", "Plain": {"Orders": 90, "LateP50MS": 500, "LateP99MS": 990, "LateMaxMS": 1200, "QueriesPerOrder": 5, "CommandsPerOrder": 3, "CPUSeconds": 1}},
	{"Name": "quick", "Plain": {"Orders": 90, "LateP50MS": 0, "LateP99MS": 0.4, "LateMaxMS": 3, "QueriesPerOrder": 5.3, "CPUSeconds": 0.5}}]}`

func TestTheDrawingNamesEachRowThatWasRun(t *testing.T) {
	t.Parallel()
	to := filepath.Join(t.TempDir(), "out.svg")
	require.NoError(t, run(strings.NewReader(text), to))
	svg, err := os.ReadFile(to)
	require.NoError(t, err)
	for _, want := range []string{"slow/1s", "quick", "p99", "database queries", "100 orders, 50 a second; scan periods / 10"} {
		require.Contains(t, string(svg), want)
	}
	require.NotContains(t, string(svg), "absent")
	for d := xml.NewDecoder(strings.NewReader(string(svg))); ; { // it is well formed
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
	}
}

func TestAReportWithoutRowsIsNotDrawn(t *testing.T) {
	t.Parallel()
	err := run(strings.NewReader(`{"Rows": [{"Name": "absent"}]}`), filepath.Join(t.TempDir(), "out.svg"))
	require.ErrorIs(t, err, errNothing)
}
