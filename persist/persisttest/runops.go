package persisttest

import (
	"time"

	"github.com/orderwheel/orderwheel/persist"
)

// What the executor does with its runs. Whoever does not hold the current claim is
// refused and changes nothing; a run that has a successor or was cancelled ends
// accordingly, whatever ends it.
var runOps = []operation{
	{name: "ack ends a run", do: acking(token), otherwise: "refused", rows: ended(
		row{"running", "settled", "gone"},
		row{"running, lost", "settled", "gone"},
		row{"over", "settled", "gone"},
	)},
	{name: "ack under another token is refused", do: acking(stale), otherwise: "refused"},
	{name: "ack without a token is refused", do: acking(""), otherwise: "refused"},

	{name: "retry puts a run back", do: retrying(token, persist.Retry{DueMS: 5000}), otherwise: "refused", rows: ended(
		row{"running", "scheduled 5000", "due 5000, attempt 1, first 1000"},
		row{"running, lost", "scheduled 5000", "due 5000, attempt 2, first 1000, lost"},
		row{"over", "scheduled 5000", "due 5000, attempt 1, first 1000"},
	)},
	{name: "an uncounted retry takes the attempt back", do: retrying(token, persist.Retry{DueMS: 5000, Uncounted: true}), otherwise: "refused", rows: ended(
		row{"running", "scheduled 5000", "due 5000"}, // as if it had never run
		row{"running, lost", "scheduled 5000", "due 5000, attempt 1, first 1000, lost"},
		row{"over", "scheduled 5000", "due 5000"},
	)},
	{name: "an abandoned retry is marked lost", do: retrying(token, persist.Retry{DueMS: 5000, Abandoned: true}), otherwise: "refused", rows: ended(
		row{"running", "scheduled 5000", "due 5000, attempt 1, first 1000, lost"},
		row{"running, lost", "scheduled 5000", "due 5000, attempt 2, first 1000, lost"},
		row{"over", "scheduled 5000", "due 5000, attempt 1, first 1000, lost"},
	)},
	{name: "an uncounted retry that is abandoned keeps the mark", do: retrying(token, persist.Retry{DueMS: 5000, Uncounted: true, Abandoned: true}), otherwise: "refused", rows: ended(
		row{"running", "scheduled 5000", "due 5000, first 1000, lost"},
		row{"running, lost", "scheduled 5000", "due 5000, attempt 1, first 1000, lost"},
		row{"over", "scheduled 5000", "due 5000, first 1000, lost"},
	)},
	{name: "retry under another token is refused", do: retrying(stale, persist.Retry{DueMS: 5000}), otherwise: "refused"},
	{name: "retry without a token is refused", do: retrying("", persist.Retry{DueMS: 5000}), otherwise: "refused"},

	// The mark lost goes with the burial.
	{name: "bury ends a run for good", do: burying(token), otherwise: "refused", rows: ended(
		row{"running", "settled", "dead since now, attempt 1, first 1000, reason new"},
		row{"running, lost", "settled", "dead since now, attempt 2, first 1000, reason new"},
		row{"over", "settled", "dead since now, attempt 1, first 1000, reason new"},
	)},
	{name: "bury under another token is refused", do: burying(stale), otherwise: "refused"},
	{name: "bury without a token is refused", do: burying(""), otherwise: "refused"},

	{name: "renew makes a lease longer", do: renewing(token, 2*time.Hour), otherwise: "no", rows: []row{
		{"running", "yes", "running until in two hours, attempt 1, first 1000"},
		{"running, cancelled", "yes", "running until in two hours, attempt 1, first 1000, cancelled"},
		{"running, successor", "yes", "running until in two hours, attempt 1, first 1000, again 4000000000000"},
		{"running, successor cancelled", "yes", "running until in two hours, attempt 1, first 1000, cancelled"},
		{"running, cancelled, successor", "yes", "running until in two hours, attempt 1, first 1000, again 4000000000000"},
		{"running, lost", "yes", "running until in two hours, attempt 2, first 1000, lost"},
		{"running, lost, cancelled", "yes", "running until in two hours, attempt 2, first 1000, cancelled, lost"},
		{"running, lost, successor", "yes", "running until in two hours, attempt 2, first 1000, lost, again 4000000000000"},
		{"over", "yes", "running until in two hours, attempt 1, first 1000"},
		{"over, cancelled", "yes", "running until in two hours, attempt 1, first 1000, cancelled"},
		{"over, successor", "yes", "running until in two hours, attempt 1, first 1000, again 4000000000000"},
	}},
	{name: "renew never makes a lease shorter", do: renewing(token, time.Minute), otherwise: "no", rows: []row{
		{"running", "yes", ""},
		{"running, cancelled", "yes", ""},
		{"running, successor", "yes", ""},
		{"running, successor cancelled", "yes", ""},
		{"running, cancelled, successor", "yes", ""},
		{"running, lost", "yes", ""},
		{"running, lost, cancelled", "yes", ""},
		{"running, lost, successor", "yes", ""},
		{"over", "yes", "running until in a minute, attempt 1, first 1000"},
		{"over, cancelled", "yes", "running until in a minute, attempt 1, first 1000, cancelled"},
		{"over, successor", "yes", "running until in a minute, attempt 1, first 1000, again 4000000000000"},
	}},
	{name: "renew under another token is refused", do: renewing(stale, 2*time.Hour), otherwise: "no"},
	{name: "renew without a token is refused", do: renewing("", 2*time.Hour), otherwise: "no"},
}

// ended adds to the rows of an operation that ends runs those of runs with a successor
// and of cancelled ones: they end alike in every operation, and begin afresh.
func ended(rows ...row) []row {
	for _, s := range []string{"running, successor", "running, cancelled, successor", "running, lost, successor", "over, successor"} {
		rows = append(rows, row{s, "scheduled 4000000000000", "due 4000000000000"})
	}
	for _, s := range []string{"running, cancelled", "running, successor cancelled", "running, lost, cancelled", "over, cancelled"} {
		rows = append(rows, row{s, "settled", "gone"})
	}
	return rows
}
