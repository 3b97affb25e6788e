package audit

import (
	"database/sql"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/executor"
)

func TestTheFileOfTheCallsKeepsEveryByteOfAnID(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, err := newCallLog(dir)
	require.NoError(t, err)
	ids := []string{"plain", "with space", "line\nbreak", `"quoted"`, "\xff\x00", "汉字", "leave 1 2 \"\""}
	for i, id := range ids {
		n := l.enter(time.UnixMicro(int64(i)), executor.Task{ID: id, Attempt: i, Source: executor.FromRecovery})
		l.leave(time.UnixMicro(int64(10*i)), n, errors.New(id))
	}
	require.NoError(t, l.err())
	calls, err := readLogs(dir) // before it is closed: a killed process closes nothing
	require.NoError(t, err)
	require.NoError(t, l.close())
	require.Len(t, calls, len(ids))
	for i, c := range calls {
		c.id = ""
		require.Equal(t, call{orderNo: ids[i], source: "recovery", attempt: i, entryUS: int64(i),
			commitUS: sql.NullInt64{Int64: int64(10 * i), Valid: true}, err: sql.NullString{String: ids[i], Valid: true}}, *c)
	}
}

func TestALineThatAKillCutIsLeftOutWhereverItIsCut(t *testing.T) {
	t.Parallel()
	const first, second = "enter 1 10 1 wheel \"a\"\n", "enter 2 20 1 sweep \"b\"\n"
	for cut := range len(second) {
		calls, err := parseLog("s", first+second[:cut])
		require.NoError(t, err)
		require.Equal(t, []*call{{id: "s-1", orderNo: "a", source: "wheel", attempt: 1, entryUS: 10}}, calls)
	}
	calls, err := parseLog("s", first+second)
	require.NoError(t, err)
	require.Len(t, calls, 2)
}

func TestADamagedFileOfTheCallsIsAnError(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"":                          "neither enter nor leave",
		"exit 1 2":                  "neither enter nor leave",
		"enter 1 10 1 wheel":        "unexpected EOF",
		"enter 1 10 1 wheel a":      "invalid syntax",
		"enter 1 ten 1 wheel \"a\"": "invalid syntax",
		"enter 1 10 one wheel \"\"": "invalid syntax",
		"leave 1 10":                "unexpected EOF",
		"leave 9 10 \"\"":           "call 9 was not entered",
		"leave 1 10 \"":             "invalid syntax",
	} {
		_, err := parseLog("s", "enter 1 10 1 wheel \"a\"\n"+line+"\n")
		require.ErrorContains(t, err, "line 2: ", line)
		require.ErrorContains(t, err, want, line)
	}
}

func TestEachProcessHasAFileOfItsOwn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for range 2 {
		l, err := newCallLog(dir)
		require.NoError(t, err)
		l.enter(time.Now(), executor.Task{ID: "a"})
		require.NoError(t, l.close())
	}
	calls, err := readLogs(dir)
	require.NoError(t, err)
	require.Len(t, calls, 2)
	require.NotEqual(t, calls[0].id, calls[1].id)
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 2)
}

func TestRanks(t *testing.T) {
	t.Parallel()
	require.Zero(t, rankMS(nil, 0.99))
	for _, c := range []struct {
		us   []int64
		q    float64
		want float64
	}{
		{[]int64{1500}, 0.5, 1.5},
		{[]int64{1000, 2000}, 0.5, 1},
		{[]int64{1000, 2000, 3000}, 0.5, 2},
		{[]int64{1000, 2000, 3000}, 0.99, 3},
		{[]int64{-2000, 3000}, 0, -2},
	} {
		require.Equal(t, c.want, rankMS(c.us, c.q), "%v %v", c.us, c.q)
	}
}
