package redistest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSentinelsPromoteAReplicaOfADeadPrimary(t *testing.T) {
	t.Parallel()
	s := Start(t)
	r := StartReplica(t, s)
	sentinels := StartSentinels(t, 3, s, 1)
	c := sentinels.Client(t)
	require.NoError(t, c.Set(bounded(t), "k", "v", 0).Err())
	require.Equal(t, "v", s.Client(t).Get(bounded(t), "k").Val())
	s.Kill()
	sentinels.WaitPrimary(r)
	require.NoError(t, c.Set(bounded(t), "k2", "v", 0).Err())
	require.Equal(t, "v", r.Client(t).Get(bounded(t), "k2").Val())
}

func TestASentinelThatRestartsKnowsWhatItKnew(t *testing.T) {
	t.Parallel()
	s := Start(t)
	sentinels := StartSentinels(t, 3, s, 0)
	sentinels.Nodes()[0].Restart()
	sentinels.Nodes()[1].Kill()
	sentinels.wait("sentinels=3")
	require.Len(t, sentinels.Nodes(), 3)
}
