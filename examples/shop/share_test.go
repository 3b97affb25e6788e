package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhichOrdersAreTheEnginesDoesNotChange(t *testing.T) {
	t.Parallel()
	var has []string
	for i := range 40 {
		if no := fmt.Sprintf("order-%d", i); share(10).has(no) {
			has = append(has, no)
		}
	}
	require.Equal(t, []string{"order-17", "order-18", "order-20", "order-32", "order-37"}, has)
}

func TestAShareIsItsPercentAndALargerOneHasAllOfASmaller(t *testing.T) {
	t.Parallel()
	const n = 100_000
	var last int
	for _, s := range []share{0, 1, 10, 50, 100} {
		count := 0
		for i := range n {
			no := fmt.Sprintf("2026120104%06d", i)
			if s.has(no) {
				count++
				require.True(t, (s + 1).has(no))
			}
		}
		require.InDelta(t, float64(s)/100*n, float64(count), n/200)
		require.GreaterOrEqual(t, count, last)
		last = count
	}
	require.Equal(t, n, last)
}

// pages is an unpaidOrders of n orders, which are due at their number.
type pages int

func (p pages) Unpaid(_ context.Context, after string, limit int) (ids []string, dueMS []int64, err error) {
	for i := range int64(p) {
		if no := fmt.Sprintf("o%05d", i); no > after && len(ids) < limit {
			ids, dueMS = append(ids, no), append(dueMS, i)
		}
	}
	return ids, dueMS, nil
}

func TestTheSourceHasAllOrdersOfTheShareAndNoOthers(t *testing.T) {
	t.Parallel()
	for _, sh := range []share{0, 1, 50, 100} {
		var want, got []string
		for i := range 1000 {
			if no := fmt.Sprintf("o%05d", i); sh.has(no) {
				want = append(want, no)
			}
		}
		for after := ""; ; {
			ids, dueMS, err := sharedSource{pages(1000), sh}.Unpaid(t.Context(), after, 10)
			require.NoError(t, err)
			for i, id := range ids {
				require.Equal(t, fmt.Sprintf("o%05d", dueMS[i]), id)
			}
			if len(ids) == 0 {
				break
			}
			got, after = append(got, ids...), ids[len(ids)-1]
		}
		require.True(t, slices.Equal(want, got), "share %d", sh)
	}
}

type broken struct{}

func (broken) Unpaid(context.Context, string, int) ([]string, []int64, error) {
	return nil, nil, errors.New("away")
}

func TestTheSourceTellsThatTheDatabaseFails(t *testing.T) {
	t.Parallel()
	_, _, err := sharedSource{broken{}, everyOrder}.Unpaid(t.Context(), "", 10)
	require.EqualError(t, err, "away")
}
