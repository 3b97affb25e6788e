package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/orderwheel/orderwheel/examples/internal/local"
	"github.com/orderwheel/orderwheel/executor"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/panjf2000/ants/v2.(*poolCommon).purgeStaleWorkers"),
		goleak.IgnoreAnyFunction("github.com/panjf2000/ants/v2.(*poolCommon).ticktock"))
}

func TestWhatIsNotUsedExpiresAndComesBackOnce(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	enough, err := local.Patiently(func(goodFor time.Duration) error {
		out.Reset()
		return run(t.Context(), goodFor, &out)
	})
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintf("%-36s ", fmt.Sprintf("10 coupons granted, good for %v:", enough))+`10 unused, 0 used, 0 expired; 0 to give
4 used:                              6 unused, 4 used, 0 expired; 0 to give
their time is over:                  0 unused, 4 used, 6 expired; 6 to give
the handler run once more for all:   0 unused, 4 used, 6 expired; 6 to give
`, out.String())
}

var expireAt = time.UnixMilli(1_800_000_000_000)

// setup is a campaign of one coupon, which is granted.
func setup(t *testing.T) coupons {
	t.Helper()
	place, err := local.Open(t.Context(), schema+`INSERT INTO campaigns VALUES ('autumn', 1);`)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, place.Close()) })
	c := coupons{place.DB}
	require.NoError(t, c.grant(t.Context(), "c", "autumn", "ann", expireAt))
	return c
}

func (c coupons) requireTally(t *testing.T, want tally) {
	t.Helper()
	got, err := c.tally(t.Context())
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func TestACouponIsNotGrantedBeyondTheQuota(t *testing.T) {
	t.Parallel()
	c := setup(t)
	require.ErrorIs(t, c.grant(t.Context(), "c2", "autumn", "bob", expireAt), errNoneLeft)
	c.requireTally(t, tally{unused: 1})
}

func TestAHandlerThatIsEarlyComesBackAtTheInstant(t *testing.T) {
	t.Parallel()
	c := setup(t)
	err := c.expire(t.Context(), executor.Task{ID: "c", Now: expireAt.Add(-time.Millisecond)})
	require.Equal(t, executor.RetryAt(expireAt), err)
	c.requireTally(t, tally{unused: 1})
}

func TestACouponPastItsInstantCannotBeUsed(t *testing.T) {
	t.Parallel()
	c := setup(t)
	ok, err := c.use(t.Context(), "c", expireAt)
	require.NoError(t, err)
	require.False(t, ok)
}

func TestAUsedCouponDoesNotExpire(t *testing.T) {
	t.Parallel()
	c := setup(t)
	ok, err := c.use(t.Context(), "c", expireAt.Add(-time.Millisecond))
	require.NoError(t, err)
	require.True(t, ok)
	require.NoError(t, c.expire(t.Context(), executor.Task{ID: "c", Now: expireAt}))
	c.requireTally(t, tally{used: 1})
}

func TestACouponThatIsNotThereYetIsTriedAgain(t *testing.T) {
	t.Parallel()
	require.ErrorContains(t, setup(t).expire(t.Context(), executor.Task{ID: "none", Now: expireAt}), `coupon "none": `)
}
