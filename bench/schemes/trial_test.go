package main

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// The whole program, with its processes and its kill. What is in memory alone is lost by
// that; what stands in a server is not.
func TestTheProgramTellsWhatAKillLoses(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts servers of its own")
	}
	skipWithoutServers(t)
	var out, progress bytes.Buffer
	status := run(t.Context(), []string{"-json", "-claims=false", "-orders", "200", "-rate", "50", "-scale", "50", "-only", "delay-queue,zset-lock,orderwheel"}, &out, &progress)
	require.Zero(t, status, progress.String())
	var r Report
	require.NoError(t, json.Unmarshal(out.Bytes(), &r))
	require.Len(t, r.Rows, 3)
	for _, row := range r.Rows {
		for _, f := range []*Figures{row.Plain, row.Two} {
			require.NotNil(t, f, row.Name)
			require.Zero(t, f.NeverClosed, row.Name)
			require.Zero(t, f.Early, row.Name)
			require.Zero(t, f.DoubleEffects, row.Name)
		}
		require.Equal(t, 180, row.Plain.Orders)
		require.GreaterOrEqual(t, row.Plain.QueriesPerOrder, 5.0, "begin, three updates, commit")
		require.Positive(t, row.Plain.MemoryMB)
		if row.Name == "delay-queue" {
			require.Zero(t, row.Plain.CommandsPerOrder)
			require.Positive(t, row.Kill.NeverClosed)
		} else {
			require.Positive(t, row.Plain.CommandsPerOrder)
			require.Zero(t, row.Kill.NeverClosed, row.Name)
		}
	}
	var table bytes.Buffer
	require.NoError(t, printTable(&table, r))
	for _, want := range []string{"orderwheel", "zset-lock", "RocketMQ", "scale 50"} {
		require.Contains(t, table.String(), want)
	}
}
