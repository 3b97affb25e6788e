package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/internal/dbtest"
	"github.com/orderwheel/orderwheel/internal/redistest"
)

// skipWithoutServers skips, or fails, a test of the program where it has no servers.
func skipWithoutServers(t *testing.T) {
	t.Helper()
	_ = dbtest.MariaDB(t)
	_ = redistest.Start(t)
}

func TestAKillLosesWhatIsInMemoryAlone(t *testing.T) {
	t.Parallel()
	skipWithoutServers(t)
	picked, err := pick("delay-queue,zset-lock")
	require.NoError(t, err)
	s, err := startServers(t.Context(), picked)
	require.NoError(t, err)
	defer s.stop()
	for _, r := range picked {
		f, err := trial{row: r, orders: 100, rate: 30, scale: 50, workers: 4, instances: 1, kill: true}.run(t.Context(), s)
		require.NoError(t, err)
		if r.name == "delay-queue" {
			require.GreaterOrEqual(t, f.NeverClosed, f.AfterKill)
			require.Positive(t, f.AfterKill)
		} else {
			require.Zero(t, f.NeverClosed, r.name)
		}
		require.Zero(t, f.DoubleEffects, r.name)
		require.Zero(t, f.Early, r.name)
	}
}

func TestTheProgramMeasuresAndPrintsAgainWhatItHasMeasured(t *testing.T) {
	t.Parallel()
	skipWithoutServers(t)
	var out, progress bytes.Buffer
	status := run(t.Context(), []string{"-json", "-claims=false", "-orders", "20", "-rate", "50", "-scale", "50", "-only", "orderwheel"}, &out, &progress)
	require.Zero(t, status, progress.String())
	var r Report
	require.NoError(t, json.Unmarshal(out.Bytes(), &r))
	require.Len(t, r.Rows, 1)
	row := r.Rows[0]
	for _, f := range []*Figures{row.Plain, row.Kill, row.Two} {
		require.NotNil(t, f)
		require.Equal(t, 18, f.Orders)
		require.Zero(t, f.NeverClosed)
		require.Zero(t, f.Early)
		require.Zero(t, f.DoubleEffects)
	}
	require.GreaterOrEqual(t, row.Plain.QueriesPerOrder, 5.0, "begin, three updates, commit")
	require.Positive(t, row.Plain.CommandsPerOrder)

	file := filepath.Join(t.TempDir(), "report.json")
	require.NoError(t, os.WriteFile(file, out.Bytes(), 0o600))
	var table bytes.Buffer
	require.Zero(t, run(t.Context(), []string{"-from", file}, &table, &progress), progress.String())
	for _, want := range []string{"orderwheel", "RocketMQ", "scale 50"} {
		require.Contains(t, table.String(), want)
	}
}

func TestARowWhoseServerIsAbsentSaysWhichAndIsPrinted(t *testing.T) {
	t.Parallel()
	s := &servers{absent: map[string]string{needsRabbit: "it is not installed", peersAbsent: "no go command"}}
	o := options{orders: 100, scale: 10, workers: 1}
	var r Report
	for _, name := range []string{"rabbitmq-dlx", "asynq"} {
		wanted, ok := rowNamed(name)
		require.True(t, ok)
		row, err := measureRow(t.Context(), o, r, s, wanted)
		require.NoError(t, err)
		require.Nil(t, row.Plain)
		r.Rows = append(r.Rows, row)
	}
	r.Took = time.Minute
	var table bytes.Buffer
	require.NoError(t, printTable(&table, r))
	require.Contains(t, table.String(), "rabbitmq-dlx was not run. rabbitmq-server: it is not installed")
	require.Contains(t, table.String(), "asynq was not run. no go command")
}
