package faultproxy

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// decisions are what a rule says to n commands of this name.
func decisions(rule Rule, n int, name string) (list []Fault) {
	for i := range n {
		list = append(list, rule(Command{N: i + 1, Conn: 1, Words: []string{name}}).Fault)
	}
	return list
}

func TestEveryThirdCommandIsHit(t *testing.T) {
	t.Parallel()
	got := decisions(Every(3, Do(DropReply)), 7, "get")
	require.Equal(t, []Fault{Pass, Pass, DropReply, Pass, Pass, DropReply, Pass}, got)
}

func TestTheNextCommandsAreHitOnceEach(t *testing.T) {
	t.Parallel()
	got := decisions(Next(Do(Twice), Action{}, Answer("+x\r\n")), 5, "get")
	require.Equal(t, []Fault{Twice, Pass, AnswerAs, Pass, Pass}, got)
}

func TestOnlyTheNamedCommandsAreCounted(t *testing.T) {
	t.Parallel()
	rule := Only(Every(2, Do(Hang)), "evalsha", "eval")
	require.Equal(t, []Fault{Pass, Hang}, decisions(rule, 2, "EVALSHA"))
	require.Equal(t, []Fault{Pass, Pass, Pass}, decisions(rule, 3, "hello"))
	require.Equal(t, []Fault{Pass, Hang}, decisions(rule, 2, "eval"))
}

func TestARandomRuleIsFixedByItsSeed(t *testing.T) {
	t.Parallel()
	draw := func(seed uint64) []Fault {
		return decisions(Random(seed, 0.5, Do(Hold), Do(CutReply)), 1000, "get")
	}
	require.Equal(t, draw(1), draw(1))
	require.NotEqual(t, draw(1), draw(2))
	n := map[Fault]int{}
	for _, f := range draw(1) {
		n[f]++
	}
	require.InDelta(t, 500, n[Pass], 100)
	require.InDelta(t, 250, n[Hold], 100)
	require.InDelta(t, 250, n[CutReply], 100)
	require.Len(t, n, 3)
}

func TestEachFaultHasAName(t *testing.T) {
	t.Parallel()
	for f := Pass; f <= HoldReply; f++ {
		require.NotContains(t, f.String(), "Fault(")
	}
	require.Equal(t, "Fault(-1)", Fault(-1).String())
	require.Equal(t, "HoldReply", HoldReply.String())
	require.Equal(t, "Fault(11)", (HoldReply + 1).String())
}
