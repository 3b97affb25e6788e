package persist_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/internal/redistest"
	"github.com/orderwheel/orderwheel/persist"
)

// replicated is a bed whose server has a replica, and whose store waits for it.
type replicated struct {
	bed
	replica *redistest.Server
	copy    *redis.Client // of the replica
}

func setupReplicated(t testing.TB) replicated {
	t.Helper()
	b := setupReal(t)
	r := replicated{bed: b, replica: redistest.StartReplica(t, b.server)}
	r.copy = r.replica.Client(t)
	r.Redis = waitingFor(t, b.client, 10*time.Second)
	return r
}

// inVain is how long a store waits for a replica that is not there.
const inVain = 50 * time.Millisecond

func waitingFor(t testing.TB, client redis.UniversalClient, timeout time.Duration) *persist.Redis {
	t.Helper()
	s, err := persist.New(client, persist.Options{WaitReplicas: 1, WaitTimeout: timeout})
	require.NoError(t, err)
	return s
}

// requireNotReplicated fails unless the write is stored and the error says so.
func requireNotReplicated(t *testing.T, err error) {
	t.Helper()
	require.ErrorIs(t, err, persist.ErrNotReplicated)
	require.NotErrorIs(t, err, persist.ErrUnknownOutcome)
	require.ErrorContains(t, err, "0 of 1 replicas")
	require.Empty(t, persist.Missing(err, 1))
}

// Cases 59, 60 and 140.
func TestWhatUsersWroteIsOnTheReplica(t *testing.T) {
	t.Parallel()
	b := setupReplicated(t)
	list := ids("order", 100)
	for _, id := range list {
		b.scheduled(t, past, id)
	}
	b.server.Kill()
	for _, id := range list {
		require.EqualValues(t, past, b.copy.ZScore(t.Context(), keyDue, id).Val(), "%s", id)
	}
	b.replica.Promote()
	b.Redis, b.client = newStore(t, b.copy), b.copy
	b.claimed(t, "token", time.Hour, list...)
}

// Case 59.
func TestAWriteThatNoReplicaHasIsStoredAndSaysSo(t *testing.T) {
	t.Parallel()
	b := setupReplicated(t)
	b.scheduled(t, past, "x", "y")
	b.replica.Pause()
	b.Redis = waitingFor(t, b.client, inVain)

	requireNotReplicated(t, b.Schedule(bounded(t), []persist.Due{{ID: "x", DueMS: 5}}))
	require.Equal(t, map[string]string{"x": "5", "y": fmt.Sprint(past)}, b.stored(t).Due)
	outcomes, err := b.Cancel(bounded(t), []string{"x", "z"})
	requireNotReplicated(t, err)
	require.Equal(t, []persist.CancelOutcome{persist.Cancelled, persist.NotFound}, outcomes, "the answers stand")
	b.claimed(t, "token", time.Hour, "y") // a claim does not wait
	_, err = b.Ack(bounded(t), []persist.Lease{{ID: "y", Token: "token"}})
	require.NoError(t, err)

	b.replica.Resume()
	for ctx := bounded(t); ; {
		if err = b.Schedule(ctx, []persist.Due{{ID: "x", DueMS: 6}}); err == nil {
			break
		}
		requireNotReplicated(t, err)
	}
	require.EqualValues(t, 6, b.copy.ZScore(t.Context(), keyDue, "x").Val())
}

// A flush whose answer was lost is sent again and changes nothing. WAIT on its
// connection must not take that for a write that all replicas have.
func TestARepeatedWriteWaitsForTheReplicaToo(t *testing.T) {
	t.Parallel()
	r := setupReplicated(t)
	b, p := behindProxy(t, r.bed)
	b.Redis = waitingFor(t, p.client(t), 10*time.Second)
	b.scheduled(t, past, "x")
	r.replica.Pause()
	b.Redis = waitingFor(t, p.client(t), inVain)
	p.faults(lostAnswer)
	requireNotReplicated(t, b.Schedule(bounded(t), []persist.Due{{ID: "x", DueMS: 5}}))
	require.Equal(t, map[string]string{"x": "5"}, b.stored(t).Due)
}

// When the wait itself fails, the write is stored all the same.
func TestAWaitThatFailsIsNoUnknownOutcome(t *testing.T) {
	t.Parallel()
	b := setupReplicated(t)
	require.NoError(t, b.client.Do(t.Context(), "acl", "setuser", "default", "-wait").Err())
	err := b.Schedule(bounded(t), []persist.Due{{ID: "x", DueMS: 5}})
	require.ErrorIs(t, err, persist.ErrNotReplicated)
	require.NotErrorIs(t, err, persist.ErrUnknownOutcome)
	require.ErrorContains(t, err, "NOPERM")
	require.Equal(t, map[string]string{"x": "5"}, b.stored(t).Due)
}

func TestCheckWarnsOfTooFewReplicas(t *testing.T) {
	t.Parallel()
	b := setupReplicated(t)
	requireWarning := func(s *persist.Redis, want bool) {
		t.Helper()
		warnings, err := s.Check(bounded(t))
		require.NoError(t, err)
		require.Equal(t, want, strings.Contains(strings.Join(warnings, "\n"), "WaitReplicas is"), "%q", warnings)
	}
	requireWarning(b.Redis, false)
	two, err := persist.New(b.client, persist.Options{WaitReplicas: 2})
	require.NoError(t, err)
	requireWarning(two, true)
}

func TestNewRefusesDurabilityThatCannotBe(t *testing.T) {
	t.Parallel()
	client := setupMini(t).client
	_, err := persist.New(client, persist.Options{WaitReplicas: -1, WaitTimeout: time.Microsecond})
	require.ErrorIs(t, err, persist.ErrInvalid)
	require.ErrorContains(t, err, "WaitReplicas is -1")
	require.ErrorContains(t, err, "WaitTimeout is 1µs")
	_, err = persist.New(wrapped{client}, persist.Options{WaitReplicas: 1})
	require.ErrorIs(t, err, persist.ErrInvalid)
	require.ErrorContains(t, err, "wrapped")
	_, err = persist.New(wrapped{client}, persist.Options{})
	require.NoError(t, err)
}

// wrapped is a client that persist does not know.
type wrapped struct{ redis.UniversalClient }

func (wrapped) Do(context.Context, ...any) *redis.Cmd { panic("not called") }
