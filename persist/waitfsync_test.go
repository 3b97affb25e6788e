package persist_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/internal/redistest"
	"github.com/orderwheel/orderwheel/persist"
)

func fsyncing(t testing.TB, client redis.UniversalClient, replicas int, timeout time.Duration) *persist.Redis {
	t.Helper()
	s, err := persist.New(client, persist.Options{WaitFsync: true, WaitReplicas: replicas, WaitTimeout: timeout})
	require.NoError(t, err)
	return s
}

// hasWaitAOF tells whether the servers of redistest know WAITAOF: Redis 7.2, Valkey.
// ORDERWHEEL_REDIS_SERVER names one.
func hasWaitAOF(t testing.TB, client *redis.Client) bool {
	t.Helper()
	info, err := client.Info(t.Context(), "server").Result()
	require.NoError(t, err)
	_, version, ok := strings.Cut(info, "redis_version:")
	require.True(t, ok, "%s", info)
	var major, minor int
	_, err = fmt.Sscanf(version, "%d.%d", &major, &minor)
	require.NoError(t, err, "%s", version)
	return major > 7 || major == 7 && minor >= 2
}

// Of a server that fsyncs once a second, and of one that does so with every write: what was
// answered outlives its kill.
func TestWhatWasFsyncedOutlivesACrash(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"everysec", "always"} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t, "--appendonly", "yes", "--appendfsync", when)
			client := server.Client(t)
			s := fsyncing(t, client, 0, 10*time.Second)
			warnings, err := s.Check(bounded(t))
			if !hasWaitAOF(t, client) {
				require.ErrorIs(t, err, persist.ErrFatal)
				require.ErrorContains(t, err, "use 7.2 or later, which WaitFsync needs")
				return
			}
			require.NoError(t, err)
			require.Empty(t, warnings)
			list := ids("order", 100)
			require.NoError(t, s.Schedule(bounded(t), due(past, list...)))
			cancelled, err := s.Cancel(bounded(t), list[:1])
			require.NoError(t, err)
			require.Equal(t, []persist.CancelOutcome{persist.Cancelled}, cancelled)
			server.Restart()
			depth, err := s.Depth(bounded(t))
			require.NoError(t, err)
			require.EqualValues(t, 99, depth.Due)
		})
	}
}

// Cases 59 and 140.
func TestAnFsyncOfAReplicaThatHangsIsMissed(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	client := server.Client(t)
	if !hasWaitAOF(t, client) {
		return // TestWAITAOFIsReadAsTheServerAnswersIt stands in
	}
	replica := redistest.StartReplica(t, server)
	require.NoError(t, replica.Client(t).ConfigSet(t.Context(), "appendonly", "yes").Err())
	require.NoError(t, fsyncing(t, client, 1, 10*time.Second).Schedule(bounded(t), due(past, "x")))
	replica.Pause()
	err := fsyncing(t, client, 1, inVain).Schedule(bounded(t), due(past, "y"))
	require.ErrorIs(t, err, persist.ErrNotReplicated)
	require.ErrorContains(t, err, "after 50ms it is on the disk of the server, but on that of 0 of 1 replicas")
	require.Empty(t, persist.Missing(err, 1))
	replica.Resume()
}

func TestCheckRefusesWaitFsyncWithoutAppendOnlyFile(t *testing.T) {
	t.Parallel()
	_, err := fsyncing(t, redistest.Start(t).Client(t), 0, time.Second).Check(bounded(t))
	require.ErrorIs(t, err, persist.ErrFatal)
	require.ErrorContains(t, err, "WaitFsync waits for the append-only file, but there is none: set appendonly yes")
}

// A miniredis that knows WAITAOF and answers as it is told, since the Redis of the tests may be
// too old.
func TestWAITAOFIsReadAsTheServerAnswersIt(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		"1 2":  "",
		"1 3":  "",
		"0 2":  "after 2s it is not on the disk of the server, and on that of 2 of 2 replicas",
		"1 1":  "after 2s it is on the disk of the server, but on that of 1 of 2 replicas",
		"1":    "WAITAOF answered [1]",
		"fail": "whether it is on a disk is not known: ERR WAITAOF cannot be used",
	} {
		t.Run(answer, func(t *testing.T) {
			t.Parallel()
			m := miniredis.RunT(t)
			var asked []string
			require.NoError(t, m.Server().Register("WAITAOF", func(c *server.Peer, _ string, args []string) {
				asked = args
				if answer == "fail" {
					c.WriteError("ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.")
					return
				}
				fields := strings.Fields(answer)
				c.WriteLen(len(fields))
				for _, f := range fields {
					c.WriteInt(int(f[0] - '0'))
				}
			}))
			client := redis.NewClient(&redis.Options{Addr: m.Addr(), ContextTimeoutEnabled: true})
			t.Cleanup(func() { require.NoError(t, client.Close()) })
			s := fsyncing(t, client, 2, 2*time.Second)
			err := s.Schedule(bounded(t), due(past, "x"))
			require.Equal(t, []string{"1", "2", "2000"}, asked)
			if want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, persist.ErrNotReplicated)
				require.NotErrorIs(t, err, persist.ErrUnknownOutcome)
				require.ErrorContains(t, err, want)
			}
			depth, err := s.Depth(bounded(t))
			require.NoError(t, err)
			require.EqualValues(t, 1, depth.Due, "it is stored in any case")
		})
	}
}
