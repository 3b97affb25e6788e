package persist_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/orderwheel/orderwheel/persist"
	"github.com/orderwheel/orderwheel/persist/persisttest"
)

// noon is where steered clocks begin.
var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func TestConformanceOfMemory(t *testing.T) {
	t.Parallel()
	persisttest.Run(t, func(*testing.T) persisttest.Bed {
		var nowMS atomic.Int64
		nowMS.Store(noon.UnixMilli())
		return persisttest.Bed{
			Store:   persist.NewMemory(nowMS.Load),
			Advance: func(d time.Duration) { nowMS.Add(d.Milliseconds()) },
		}
	})
}

func TestConformanceOfMemoryOnTheClockOfTheMachine(t *testing.T) {
	t.Parallel()
	persisttest.Run(t, func(*testing.T) persisttest.Bed { return persisttest.Bed{Store: persist.NewMemory(nil)} })
}
