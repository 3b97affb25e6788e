package persist_test

import (
	"testing"
	"time"

	"github.com/orderwheel/orderwheel/persist"
	"github.com/stretchr/testify/require"
)

func renewX(t *testing.T, b bed, token string, lease time.Duration) bool {
	t.Helper()
	got, err := b.Renew(bounded(t), []persist.Lease{{ID: "x", Token: token}}, lease)
	require.NoError(t, err)
	return got[0]
}

func TestRenewMakesALeaseLongerAndNeverShorter(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		for _, line := range []struct {
			from, token string
			lease       time.Duration
			want        bool
			longer      bool
			record      string // "": not running
		}{
			{"gone", "tok", 2 * time.Hour, false, false, ""},
			{"due", "tok", 2 * time.Hour, false, false, ""},
			{"retry", "tok", 2 * time.Hour, false, false, ""},
			{"dead", "tok", 2 * time.Hour, false, false, ""},
			{"run", "old", 2 * time.Hour, false, false, "tok 1 - 1000 -"},
			{"run", "", 2 * time.Hour, false, false, "tok 1 - 1000 -"},
			{"run", "tok", 2 * time.Hour, true, true, "tok 1 - 1000 -"},
			{"run", "tok", time.Minute, true, false, "tok 1 - 1000 -"},
			{"run", "tok", 1, true, false, "tok 1 - 1000 -"},
			{"run+c", "tok", 2 * time.Hour, true, true, "tok 1 c 1000 -"}, // it goes on
			{"run+s", "tok", 2 * time.Hour, true, true, "tok 1 - 1000 4000000000000"},
		} {
			b.client.FlushAll(t.Context())
			if b.mini != nil {
				b.mini.SetTime(time.UnixMilli(2_000_000_000_000)) // as long as the test is in one ms
			}
			start(t, b, line.from)
			before, nowMS := b.stored(t), b.nowMS(t)
			require.Equal(t, line.want, renewX(t, b, line.token, line.lease), line.from)
			after := b.stored(t)
			if line.longer {
				require.GreaterOrEqual(t, lookupX(t, b).LeaseMS, nowMS+line.lease.Milliseconds(), line.from)
				require.LessOrEqual(t, lookupX(t, b).LeaseMS, b.nowMS(t)+line.lease.Milliseconds(), line.from)
				delete(before.Running, "x")
				delete(after.Running, "x")
			}
			require.Equal(t, before, after, line.from)
			if line.record != "" {
				where, record := left(t, b)
				require.Equal(t, "running", where)
				require.Equal(t, line.record, record)
			}
		}
	})
}

func TestALeaseThatRanOutIsRenewedAsLongAsNobodyTookItBack(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		overdue(t, b, func() {})
		require.True(t, renewX(t, b, "tok", time.Hour))
		reaped, err := b.Reap(t.Context(), 10)
		require.NoError(t, err)
		require.Empty(t, reaped)
		require.Equal(t, persist.Settled, ackX(t, b, "tok").State)

		overdue(t, b, func() {})
		_, err = b.Reap(t.Context(), 10)
		require.NoError(t, err)
		require.False(t, renewX(t, b, "tok", time.Hour))
		b.claimed(t, "tok2", time.Hour, "x")
		require.False(t, renewX(t, b, "tok", time.Hour))
	})
}
