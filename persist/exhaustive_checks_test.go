//go:build !race

package persist_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What the story would say to steps that no model without a guard makes first.
func TestTheStoryFailsWhatItShould(t *testing.T) {
	t.Parallel()
	due := cell{due: 1, lease: none, buried: none, first: none, succ: none}
	run := cell{due: none, lease: 3, buried: none, token: 1, attempt: 1, first: 1, succ: none}
	stands := story{alive: true, owed: true, at: 1, first: none, until: none}
	runs := story{alive: true, at: none, first: 1, runs: 1, holder: 1, until: 3}
	banned := stands
	banned.ban = true
	for _, line := range []struct {
		want        string
		story       story
		op          op
		seen, after cell
		said        answer
	}{
		{"b: a run started after a cancel was answered", banned, op{kind: claim, token: 1}, due, run, answer{claimed, 1, 1, 0}},
		{"b: a run that nobody started", stands, op{kind: schedule, at: 1}, run, run, answer{}},
		{"c: a run started while another goes on", runs, op{kind: claim, token: 2}, due, run, answer{claimed, 1, 1, 0}},
		{"c: a run was taken away", runs, op{kind: cancel}, nowhere, nowhere, answer{state: running}},
		{"c: the token that holds the run was refused", runs, op{kind: ack, token: 1}, run, run, answer{}},
		{"c: claim says Busy where nobody else runs it", runs, op{kind: claim, token: 1}, run, run, answer{state: busy}},
		{"c: claim says Busy where nobody else runs it", stands, op{kind: claim, token: 1}, due, due, answer{state: busy}},
		{"f: claim says NotYet, or when, and it is not so", stands, op{kind: claim, token: 1}, due, due, answer{notYet, 0, 1, 0}},
		{"f: a run started after the last attempt", story{alive: true, at: 1, first: 1, runs: 1}, op{kind: claim, token: 2, arg: 1}, due, run, answer{claimed, 2, 1, 0}},
		{"", stands, op{kind: claim, token: 1}, due, run, answer{claimed, 1, 1, 0}},
	} {
		require.Equal(t, line.want, line.story.tell(line.op, 1, line.seen, line.after, line.said, true))
	}
}

func TestAWriterThatIsShutOutIsSeen(t *testing.T) {
	t.Parallel()
	x := newExplorer(without(), plays()[0])
	w := x.p.begin()
	require.Empty(t, x.judge(&w))
	w.kept[1].last = 1
	require.Equal(t, "e: a writer is shut out", x.judge(&w))
}
