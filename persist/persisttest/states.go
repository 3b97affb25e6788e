package persisttest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/persist"
)

// state is one of the states that an id can be in, as a row of the tables.
type state struct {
	name string
	is   string // the record of an id in it, in words
	make func(t *testing.T, b *bed, id string)
}

// token is that of the current claim in each state that runs, and that of the last
// claim in each that has run. Where a state was lost, stale is that of the claim
// before.
const (
	token = "tok"
	stale = "stale"
)

var states = []state{
	{"gone", "gone", func(*testing.T, *bed, string) {}},
	{"done", "gone", func(t *testing.T, b *bed, id string) {
		b.start(t, id)
		b.ack(t, token, id)
	}},
	{"due", "due 1000", func(t *testing.T, b *bed, id string) {
		b.schedule(t, past, id)
	}},
	{"later", "due 4000000000000", func(t *testing.T, b *bed, id string) {
		b.schedule(t, future, id)
	}},
	{"retried", "due 2000, attempt 1, first 1000", func(t *testing.T, b *bed, id string) {
		b.start(t, id)
		b.putBack(t, token, persist.Retry{DueMS: 2000}, id)
	}},
	{"retried later", "due 4000000000000, attempt 1, first 1000", func(t *testing.T, b *bed, id string) {
		b.start(t, id)
		b.putBack(t, token, persist.Retry{DueMS: future}, id)
	}},
	{"lost", "due 2000, attempt 1, first 1000, lost", func(t *testing.T, b *bed, id string) {
		b.start(t, id)
		b.putBack(t, token, persist.Retry{DueMS: 2000, Abandoned: true}, id)
	}},
	{"lost uncounted", "due 2000, first 1000, lost", func(t *testing.T, b *bed, id string) {
		b.start(t, id)
		b.putBack(t, token, persist.Retry{DueMS: 2000, Abandoned: true, Uncounted: true}, id)
	}},
	{"reaped", "due now, attempt 1, first 1000, lost", func(t *testing.T, b *bed, id string) {
		b.startOver(t, id)
		require.Len(t, b.reap(t, 10), 1)
	}},

	{"running", "running until in an hour, attempt 1, first 1000", func(t *testing.T, b *bed, id string) {
		b.start(t, id)
	}},
	{"running, cancelled", "running until in an hour, attempt 1, first 1000, cancelled", func(t *testing.T, b *bed, id string) {
		b.start(t, id)
		b.cancel(t, id)
	}},
	{"running, successor", "running until in an hour, attempt 1, first 1000, again 4000000000000", func(t *testing.T, b *bed, id string) {
		b.start(t, id)
		b.schedule(t, future, id)
	}},
	{"running, successor cancelled", "running until in an hour, attempt 1, first 1000, cancelled", func(t *testing.T, b *bed, id string) {
		b.start(t, id)
		b.schedule(t, future, id)
		b.cancel(t, id)
	}},
	{"running, cancelled, successor", "running until in an hour, attempt 1, first 1000, again 4000000000000", func(t *testing.T, b *bed, id string) {
		b.start(t, id)
		b.cancel(t, id)
		b.schedule(t, future, id)
	}},
	{"running, lost", "running until in an hour, attempt 2, first 1000, lost", func(t *testing.T, b *bed, id string) {
		b.startLost(t, id)
	}},
	{"running, lost, cancelled", "running until in an hour, attempt 2, first 1000, cancelled, lost", func(t *testing.T, b *bed, id string) {
		b.startLost(t, id)
		b.cancel(t, id)
	}},
	{"running, lost, successor", "running until in an hour, attempt 2, first 1000, lost, again 4000000000000", func(t *testing.T, b *bed, id string) {
		b.startLost(t, id)
		b.schedule(t, future, id)
	}},
	{"over", "running until now, attempt 1, first 1000", func(t *testing.T, b *bed, id string) {
		b.startOver(t, id)
	}},
	{"over, cancelled", "running until now, attempt 1, first 1000, cancelled", func(t *testing.T, b *bed, id string) {
		b.startOver(t, id)
		b.cancel(t, id)
	}},
	{"over, successor", "running until now, attempt 1, first 1000, again 4000000000000", func(t *testing.T, b *bed, id string) {
		b.startOver(t, id)
		b.schedule(t, future, id)
	}},

	{"dead", "dead since now, attempt 1, first 1000, reason given", func(t *testing.T, b *bed, id string) {
		b.start(t, id)
		b.bury(t, token, "reason given", id)
	}},
	{"dead of its attempts", "dead since now, attempt 1, first 1000, a reason of the store", func(t *testing.T, b *bed, id string) {
		b.start(t, id)
		b.putBack(t, token, persist.Retry{DueMS: 2000}, id)
		claims, err := b.Claim(b.ctx, "spent", []string{id}, time.Hour, 1)
		require.NoError(t, err)
		require.Equal(t, persist.Buried, claims.Claims[0].State)
	}},
}

// start claims id, due since past.
func (b *bed) start(t *testing.T, id string) {
	t.Helper()
	b.schedule(t, past, id)
	b.take(t, token, id)
}

// startOver is start, and the lease is over.
func (b *bed) startOver(t *testing.T, id string) {
	t.Helper()
	b.schedule(t, past, id)
	require.Equal(t, persist.Claimed, b.claim(t, token, time.Millisecond, id).Claims[0].State)
	b.pass(t, 2)
}

// startLost is start, and the handler of an earlier claim may be at work.
func (b *bed) startLost(t *testing.T, id string) {
	t.Helper()
	b.schedule(t, past, id)
	b.take(t, stale, id)
	b.putBack(t, stale, persist.Retry{DueMS: 2000, Abandoned: true}, id)
	b.take(t, token, id)
}

// putBack retries a run of id.
func (b *bed) putBack(t *testing.T, token string, r persist.Retry, id string) {
	t.Helper()
	r.Lease = persist.Lease{ID: id, Token: token}
	require.Equal(t, persist.Settlement{ID: id, State: persist.Scheduled, DueMS: r.DueMS}, b.retry(t, r))
}
