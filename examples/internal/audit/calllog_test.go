package audit

import (
	"context"
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
		n := l.enter(time.UnixMicro(int64(i)), executor.Task{ID: id, Attempt: i, Now: time.UnixMicro(5), Source: executor.FromRecovery})
		l.leave(time.UnixMicro(int64(10*i)), n, errors.New(id))
		l.moved(time.UnixMicro(1), time.UnixMicro(2), id, time.UnixMilli(int64(i)))
	}
	l.killed(time.UnixMicro(77))
	require.NoError(t, l.err())
	n, err := readLogs(dir) // before it is closed: a killed process closes nothing
	require.NoError(t, err)
	require.NoError(t, l.close())
	require.Len(t, n.calls, len(ids))
	require.Len(t, n.moves, len(ids))
	require.Equal(t, []int64{77}, n.killsUS)
	for i, c := range n.calls {
		require.Equal(t, move{process: c.process, begunUS: 1, atUS: 2, expireMS: int64(i), orderNo: ids[i]}, n.moves[i])
		c.id, c.process = "", ""
		require.Equal(t, call{pid: os.Getpid(), orderNo: ids[i], source: "recovery", attempt: i, nowUS: 5, claim: claimed, entryUS: int64(i),
			commitUS: sql.NullInt64{Int64: int64(10 * i), Valid: true}, err: sql.NullString{String: ids[i], Valid: true}}, *c)
	}
}

func TestALineThatAKillCutIsLeftOutWhereverItIsCut(t *testing.T) {
	t.Parallel()
	const first, second = "enter 1 10 9 claimed 1 wheel \"a\"\n", "enter 2 20 19 unclaimed 1 sweep \"b\"\n"
	for cut := range len(second) {
		var n noted
		require.NoError(t, n.parse("7-s", first+second[:cut]))
		require.Equal(t, []*call{{id: "7-s-1", process: "7-s", pid: 7, orderNo: "a", source: "wheel", attempt: 1, nowUS: 9, claim: claimed, entryUS: 10}}, n.calls)
	}
	var n noted
	require.NoError(t, n.parse("7-s", first+second))
	require.Len(t, n.calls, 2)
	require.Equal(t, unclaimed, n.calls[1].claim)
}

func TestADamagedFileOfTheCallsIsAnError(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"":                                    "no such event",
		"exit 1 2":                            "no such event",
		"killed":                              "invalid syntax",
		"killed me":                           "invalid syntax",
		"moved 1 2":                           "unexpected EOF",
		"moved 1 two 3 \"a\"":                 "invalid syntax",
		"moved 1 2 3 a":                       "invalid syntax",
		"enter 1 10 9 claimed 1 wheel":        "unexpected EOF",
		"enter 1 10 9 claimed 1 wheel a":      "invalid syntax",
		"enter 1 ten 9 claimed 1 wheel \"a\"": "invalid syntax",
		"enter 1 10 x claimed 1 wheel \"a\"":  "invalid syntax",
		"enter 1 10 9 claimed one wheel \"\"": "invalid syntax",
		"leave 1 10":                          "unexpected EOF",
		"leave 9 10 \"\"":                     "call 9 was not entered",
		"leave 1 10 \"":                       "invalid syntax",
	} {
		err := new(noted).parse("7-s", "enter 1 10 9 claimed 1 wheel \"a\"\n"+line+"\n")
		require.ErrorContains(t, err, "line 2: ", line)
		require.ErrorContains(t, err, want, line)
	}
	require.ErrorContains(t, new(noted).parse("x-s", ""), "no pid")
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
	n, err := readLogs(dir)
	require.NoError(t, err)
	require.Len(t, n.calls, 2)
	require.NotEqual(t, n.calls[0].id, n.calls[1].id)
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

func TestEachTaskOfABatchIsACall(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	notes, err := OpenNotes(dir)
	require.NoError(t, err)
	failed := errors.New("failed")
	h := notes.WrapBatch(func(_ context.Context, tasks []executor.Task) []error {
		require.Len(t, tasks, 2)
		return []error{nil, failed}
	})
	errs := h(t.Context(), []executor.Task{{ID: "a", Attempt: 1, Now: time.UnixMicro(5)}, {ID: "b", Attempt: 2, Now: time.UnixMicro(5)}})
	require.Equal(t, []error{nil, failed}, errs)
	n, err := readLogs(dir)
	require.NoError(t, err)
	require.NoError(t, notes.Close())
	require.Len(t, n.calls, 2)
	for i, want := range []sql.NullString{{}, {String: "failed", Valid: true}} {
		require.Equal(t, []string{"a", "b"}[i], n.calls[i].orderNo)
		require.Equal(t, want, n.calls[i].err)
		require.True(t, n.calls[i].commitUS.Valid)
	}
}
