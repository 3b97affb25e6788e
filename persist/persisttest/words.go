package persisttest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/persist"
)

// words puts answers and records of one test into words, so that the tables can be
// read, and so that they hold whatever the clock shows: instants from from to till are now.
type words struct {
	from, till int64
}

// at names an instant.
func (w words) at(ms int64) string {
	for in, name := range map[time.Duration]string{0: "now", time.Minute: "in a minute", time.Hour: "in an hour", 2 * time.Hour: "in two hours"} {
		if w.from <= ms-in.Milliseconds() && ms-in.Milliseconds() <= w.till {
			return name
		}
	}
	return fmt.Sprint(ms)
}

func (w words) record(r persist.Record) string {
	parts := []string{r.Status.String()}
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	switch r.Status {
	case persist.StatusDue:
		parts[0] += " " + w.at(r.DueMS)
	case persist.StatusRunning:
		parts[0] += " until " + w.at(r.LeaseMS)
	case persist.StatusDead:
		parts[0] += " since " + w.at(r.BuriedMS)
	}
	if r.Attempt != 0 {
		add("attempt %d", r.Attempt)
	}
	if r.FirstDueMS != 0 {
		add("first %s", w.at(r.FirstDueMS))
	}
	if r.Cancelled {
		add("cancelled")
	}
	if r.Lost {
		add("lost")
	}
	if r.Successor != 0 {
		add("again %s", w.at(r.Successor))
	}
	if strings.HasPrefix(r.Reason, "reason ") {
		add("%s", r.Reason)
	} else if r.Reason != "" {
		add("a reason of the store")
	}
	return strings.Join(parts, ", ")
}

// claim puts all fields of a claim into words, those too that should be empty.
func (w words) claim(t *testing.T, c persist.Claim, nowMS int64) string {
	t.Helper()
	said := c.State.String()
	want := persist.Claim{ID: c.ID, State: c.State}
	switch c.State {
	case persist.Claimed:
		want.Attempt, want.FirstDueMS = c.Attempt, c.FirstDueMS
		said += fmt.Sprintf(", attempt %d, first %s", c.Attempt, w.at(c.FirstDueMS))
	case persist.NotYet:
		want.DueMS, want.LeftMS = c.DueMS, c.DueMS-nowMS
		said += ", due " + w.at(c.DueMS)
		require.GreaterOrEqual(t, c.LeftMS, int64(1))
	}
	require.Equal(t, want, c)
	return said
}

func (w words) settlement(t *testing.T, s persist.Settlement) string {
	t.Helper()
	if s.State == persist.Scheduled {
		return "scheduled " + w.at(s.DueMS)
	}
	require.Equal(t, persist.Settlement{ID: s.ID, State: s.State}, s)
	return s.State.String()
}

func (w words) dues(list []persist.Due) string {
	said := make([]string, len(list))
	for i, d := range list {
		said[i] = fmt.Sprintf("%s %s", d.ID, w.at(d.DueMS))
	}
	return strings.Join(said, ", ")
}
