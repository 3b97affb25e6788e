package recovery

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Case 37: a loop that panics goes on, and says so until it is well.
func TestALoopThatPanicsGoesOnAndSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := setup(t)
		require.Empty(t, r.Problems())
		r.store.put("A", time.Now().UnixMilli())
		r.store.set(func() { r.store.window = func() { panic("a bad reply") } })
		r.Start()
		later(5 * time.Second)
		require.Contains(t, fmt.Sprint(r.Problems()), "the sweep has failed for 4s: recovery: panic: a bad reply")
		require.Equal(t, 1, strings.Count(r.log.String(), "sweep_failed"))
		r.store.set(func() { r.store.window = nil })
		later(2 * time.Second)
		require.Len(t, r.get(&r.found), 1)
		require.Empty(t, r.Problems())
	})
}

func TestALoopThatHangsSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := setup(t)
		answer := make(chan struct{})
		r.store.set(func() {
			r.store.window = func() {
				r.store.mu.Unlock()
				<-answer
				r.store.mu.Lock()
			}
		})
		r.Start()
		later(10 * time.Second)
		require.Equal(t, []string{"the sweep has waited for an answer for 9s"}, r.Problems())
		close(answer)
		later(2 * time.Second)
		require.Empty(t, r.Problems())
	})
}
