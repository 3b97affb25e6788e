package redistest

import (
	"context"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

func TestAStartedServerAnswersAndSurvivesARestart(t *testing.T) {
	t.Parallel()
	s := Start(t, "--appendonly", "yes", "--appendfsync", "always")
	c := s.Client(t)
	ctx := t.Context()
	require.NoError(t, c.Set(ctx, "k", "v", 0).Err())
	addr := s.Addr()
	s.Restart()
	require.Equal(t, addr, s.Addr())
	require.Equal(t, "v", c.Get(ctx, "k").Val())
}

func TestAKilledServerIsGone(t *testing.T) {
	t.Parallel()
	s := Start(t)
	s.Kill()
	s.Kill() // twice does nothing
	_, err := net.Dial("tcp", s.Addr())
	require.Error(t, err)
}

func TestAPausedServerDoesNotAnswerUntilResumed(t *testing.T) {
	t.Parallel()
	s := Start(t)
	c := s.Client(t)
	require.NoError(t, c.Ping(t.Context()).Err())
	s.Pause()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	require.Error(t, c.Ping(ctx).Err())
	s.Resume()
	require.NoError(t, c.Ping(t.Context()).Err())
}

func TestATakenPortIsReportedAsAnEndedServer(t *testing.T) {
	t.Parallel()
	other := Start(t)
	_, port, err := net.SplitHostPort(other.Addr())
	require.NoError(t, err)
	s := &Server{t: t, bin: binary(t), dir: t.TempDir()}
	s.port, err = strconv.Atoi(port)
	require.NoError(t, err)
	require.NoError(t, s.launch())
	t.Cleanup(s.Kill)
	require.ErrorContains(t, s.waitReady(), "has ended")
}

func TestMiniAnswers(t *testing.T) {
	t.Parallel()
	var c redis.UniversalClient = Mini(t)
	require.NoError(t, c.Ping(t.Context()).Err())
}
