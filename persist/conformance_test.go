package persist_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/internal/redistest"
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

func TestConformanceOfRedis(t *testing.T) {
	t.Parallel()
	conformsOnRedis(t, persist.Options{})
}

// A limit that is never reached changes nothing.
func TestConformanceOfRedisWithMaxPending(t *testing.T) {
	t.Parallel()
	conformsOnRedis(t, persist.Options{MaxPending: 1 << 20})
}

// conformsOnRedis has one server for all: each bed has a namespace of its own.
func conformsOnRedis(t *testing.T, opts persist.Options) {
	server := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "everysec")
	var beds atomic.Int64
	persisttest.Run(t, func(t *testing.T) persisttest.Bed {
		opts := opts
		opts.Namespace = fmt.Sprintf("bed%d", beds.Add(1))
		open := func(t *testing.T) persist.Store {
			s, err := persist.New(server.Client(t), opts)
			require.NoError(t, err)
			return s
		}
		return persisttest.Bed{Store: open(t), Owner: open}
	})
}
