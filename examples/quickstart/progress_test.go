package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheBarGrowsAndCoversWhatItWasBefore(t *testing.T) {
	t.Parallel()
	var screen strings.Builder
	p := progress{w: &screen}
	p.bar(tally{total: 4000, created: 4000, paid: 1000})
	p.bar(tally{total: 4, created: 4, paid: 1, closed: 3})
	long := "[#####...............] 4,000 of 4,000 orders created, 1,000 paid, 0 closed, 3,000 open"
	short := "[####################] 4 of 4 orders created, 1 paid, 3 closed, 0 open"
	require.Equal(t, "\r"+long+"\r"+short+strings.Repeat(" ", len(long)-len(short)), screen.String())
}

func TestALineSaysHowFarTheRunIs(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	showProgress(&out, nil)() // it ends before the first second is over
	require.Empty(t, out.String())
	require.Equal(t, "3 of 1,000 orders created, 1 paid, 0 closed, 2 open", tally{total: 1000, created: 3, paid: 1}.String())
}

func TestNothingIsATerminalButATerminal(t *testing.T) {
	t.Parallel()
	require.False(t, isTerminal(&strings.Builder{}))
}
