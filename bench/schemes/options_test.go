package main

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOnlyPicksASchemeOrOneOfItsVariants(t *testing.T) {
	t.Parallel()
	for only, want := range map[string][]string{
		"zset-poll/100ms,orderwheel": {"zset-poll/100ms", "orderwheel"},
		"orderwheel,db-scan":         {"db-scan/5s", "db-scan/30s", "db-scan/60s", "db-scan/5s-sharded", "orderwheel"},
	} {
		o, err := parse([]string{"-only", only}, io.Discard)
		require.NoError(t, err)
		var names []string
		for _, r := range o.rows {
			names = append(names, r.name)
		}
		require.Equal(t, want, names, only)
	}
}

func TestWhatCannotBeMeantIsRefusedAndNamed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"-only", "orderwheel,cron"}, `"cron"`},
		{[]string{"-orders", "3"}, "-orders is 3"},
		{[]string{"-scale", "0"}, "-scale is 0"},
		{[]string{"-workers", "65"}, "-workers is 65"},
		{[]string{"-plot", "a.png"}, `"a.png"`},
		{[]string{"more"}, `"more"`},
	} {
		_, err := parse(c.args, io.Discard)
		require.ErrorContains(t, err, c.want)
		var said bytes.Buffer
		require.Equal(t, 2, run(t.Context(), c.args, io.Discard, &said))
		require.Contains(t, said.String(), c.want)
	}
}
