package persisttest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/persist"
)

// repeats is what a call answers that is made anew, because the caller does not know
// that it was made: it never does more than the first did.
var repeats = []conformance{
	repeat("schedule", "due", scheduling(5000), "", ""),
	repeat("schedule", "running", scheduling(5000), "", ""),
	repeat("schedule", "dead", scheduling(5000), "", ""),
	repeat("cancel", "due", cancelling, "cancelled", "not found"),
	repeat("cancel", "lost", cancelling, "running", "not found"),
	repeat("cancel", "running", cancelling, "running", "running"),
	repeat("claim", "due", claiming("new", 0), "claimed, attempt 1, first 1000", "claimed, attempt 1, first 1000"),
	repeat("claim", "lost", claiming("new", 0), "claimed, attempt 2, first 1000", "claimed, attempt 2, first 1000"),
	repeat("claim over the limit", "retried", claiming("new", 1), "buried", "gone"),
	repeat("ack", "running", acking(token), "settled", "refused"),
	repeat("ack", "running, successor", acking(token), "scheduled 4000000000000", "refused"),
	repeat("retry", "running", retrying(token, persist.Retry{DueMS: 5000}), "scheduled 5000", "refused"),
	repeat("retry uncounted", "running", retrying(token, persist.Retry{DueMS: 5000, Uncounted: true}), "scheduled 5000", "refused"),
	repeat("retry", "running, cancelled", retrying(token, persist.Retry{DueMS: 5000}), "settled", "refused"),
	repeat("bury", "running", burying(token), "settled", "refused"),
	repeat("bury", "running, successor", burying(token), "scheduled 4000000000000", "refused"),
	repeat("renew", "running", renewing(token, 2*time.Hour), "yes", "yes"),
	repeat("reap", "over", reaping, "over now", ""),
	repeat("reap", "over, cancelled", reaping, "", ""),
	repeat("requeue", "dead", requeueing, "scheduled now", "refused"),
	repeat("ensure", "gone", ensuring(5000), "yes", "no"),
	repeat("ensure", "running", ensuring(5000), "no", "no"),
	repeat("discard", "dead", discarding, "yes", "no"),
}

// repeat does one thing twice to an id in a state.
func repeat(name, from string, do func(*testing.T, *bed, *words, string) string, first, again string) conformance {
	return conformance{name + " of what is " + from + ", made anew, does no more", func(t *testing.T, b *bed) {
		w := words{from: b.nowMS(t)}
		for _, s := range states {
			if s.name == from {
				s.make(t, b, from)
			}
		}
		require.Equal(t, first, do(t, b, &w, from))
		w.till = b.nowMS(t)
		once := w.record(b.lookup(t, from)[0])
		require.Equal(t, again, do(t, b, &w, from))
		w.till = b.nowMS(t)
		require.Equal(t, once, w.record(b.lookup(t, from)[0]))
		b.requireOnePlace(t, from)
	}}
}
