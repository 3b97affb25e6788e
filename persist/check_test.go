package persist_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/orderwheel/orderwheel/persist"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

func TestCheckFindsNothingWrongWithAGoodServer(t *testing.T) {
	t.Parallel()
	b := setupReal(t, "--appendonly", "yes")
	warnings, err := b.Check(t.Context())
	require.NoError(t, err)
	require.Empty(t, warnings)
	b.requireEmpty(t)
}

// What Check has passed, no call fails in afterwards because a command is forbidden or has another
// name.
func TestCheckTriesEveryCommandOfTheScripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("lua/*.lua")
	require.NoError(t, err)
	called := regexp.MustCompile(`(?:redis\.call|write_many|read_many|read_if_any)\('([A-Z]+)'(?:, '([A-Z]+)')?`)
	commands := map[string][]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range called.FindAllStringSubmatch(string(text), -1) {
			commands[filepath.Base(file)] = append(commands[filepath.Base(file)], slices.DeleteFunc(m[1:], func(s string) bool { return s == "" })...)
		}
	}
	tried := append(commands["probe.lua"], "TIME", // by common.lua
		"INCR") // Epoch is asked next, and is nothing else
	for file, list := range commands {
		require.Subset(t, tried, list, file)
	}
	require.Contains(t, commands, "lone.lua")
}

func TestCheckLeavesTasksAlone(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		b.scheduled(t, past, "x", "y")
		b.claimed(t, "tok", time.Hour, "y")
		b.died(t, past, "z")
		before := b.stored(t)
		_, err := b.Check(t.Context())
		require.NoError(t, err)
		require.Equal(t, before, b.stored(t))
	})
}

// What a server does not tell is a warning, never an error.
func TestCheckWarnsOfWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	b := setupMini(t)
	warnings, err := b.Check(t.Context())
	require.NoError(t, err)
	for _, what := range []string{"version", "eviction policy", "append-only file"} {
		require.Contains(t, strings.Join(warnings, "\n"), what)
	}

	b = setupReal(t)
	do(t, b.client, "ACL", "SETUSER", "managed", "on", ">pw", "~*", "+@all", "-info", "-config")
	c := redis.NewClient(&redis.Options{Addr: b.server.Addr(), ContextTimeoutEnabled: true, Username: "managed", Password: "pw"})
	t.Cleanup(func() { _ = c.Close() })
	warnings, err = newStore(t, c).Check(t.Context())
	require.NoError(t, err)
	require.Len(t, warnings, 1)
	require.Contains(t, warnings[0], "INFO cannot be read")
}

func TestCheckWarnsOfAServerWithoutAppendOnlyFile(t *testing.T) {
	t.Parallel()
	b := setupReal(t)
	warnings, err := b.Check(t.Context())
	require.NoError(t, err)
	require.Len(t, warnings, 1)
	require.Contains(t, warnings[0], "appendonly yes")
}

func TestCheckRefusesAnEvictionPolicyThatDropsTasks(t *testing.T) {
	t.Parallel()
	b := setupReal(t, "--appendonly", "yes", "--maxmemory-policy", "allkeys-lru")
	warnings, err := b.Check(t.Context())
	require.NoError(t, err, "without maxmemory nothing is dropped")
	require.Contains(t, strings.Join(warnings, "\n"), "allkeys-lru")

	do(t, b.client, "CONFIG", "SET", "maxmemory", "100mb")
	_, err = b.Check(t.Context())
	require.ErrorIs(t, err, persist.ErrFatal)
	require.ErrorContains(t, err, "allkeys-lru")
	require.ErrorContains(t, err, "noeviction")

	do(t, b.client, "CONFIG", "SET", "maxmemory-policy", "volatile-lru")
	warnings, err = b.Check(t.Context())
	require.NoError(t, err, "our keys have no TTL")
	require.Empty(t, warnings)
}

func TestCheckWarnsOfAClientThatDoesNotListen(t *testing.T) {
	t.Parallel()
	b := setupReal(t, "--appendonly", "yes")
	c := redis.NewClient(&redis.Options{Addr: b.server.Addr(), ReadTimeout: -1})
	t.Cleanup(func() { _ = c.Close() })
	warnings, err := newStore(t, c).Check(t.Context())
	require.NoError(t, err)
	require.Len(t, warnings, 2)
	require.Contains(t, warnings[0], "ContextTimeoutEnabled")
	require.Contains(t, warnings[1], "ReadTimeout")
}

func TestCheckWarnsOfASingleClientOfAClusterNode(t *testing.T) {
	t.Parallel()
	b := setupReal(t, "--appendonly", "yes", "--cluster-enabled", "yes")
	do(t, b.client, "CLUSTER", "ADDSLOTSRANGE", 0, 16383)
	for ctx := bounded(t); !strings.Contains(b.client.ClusterInfo(ctx).Val(), "cluster_state:ok"); {
		require.NoError(t, ctx.Err())
	}
	warnings, err := b.Check(bounded(t))
	require.NoError(t, err)
	require.Len(t, warnings, 1)
	require.Contains(t, warnings[0], "NewClusterClient")

	cc := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{b.server.Addr()}, ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = cc.Close() })
	b.Redis, err = persist.New(cc, persist.Options{Shards: 1}) // as it was stored
	require.NoError(t, err)
	warnings, err = b.Check(bounded(t))
	require.NoError(t, err)
	require.Empty(t, warnings)
	start(t, b, "run+s")
	require.Equal(t, persist.Scheduled, ackX(t, b, "tok").State, "a Cluster client finds the node")
}

// Cases 73 and 74: an old server is refused at Start, with a clear error.
func TestCheckRefusesAnOldServer(t *testing.T) {
	t.Parallel()
	for version, ok := range map[string]bool{
		"4.0.14": false, "5.0.7": false, "6.0.16": false, "6.2.0": true, "6.2.14": true, "7.0.15": true, "7.2.4": true, "8.2.1": true, "10.0.0": true,
	} {
		m := setupMini(t)
		info := fmt.Sprintf("# Server\r\nredis_version:%s\r\nredis_mode:standalone\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\naof_enabled:1\r\n", version)
		m.client.AddHook(answerInfo(info))
		warnings, err := m.Check(t.Context())
		require.Empty(t, warnings)
		if ok {
			require.NoError(t, err, version)
			continue
		}
		require.ErrorIs(t, err, persist.ErrFatal, version)
		require.ErrorContains(t, err, version)
		require.ErrorContains(t, err, "6.2")
	}
}

// answerInfo is a hook of a client that answers INFO by itself.
type answerInfo string

func (answerInfo) DialHook(next redis.DialHook) redis.DialHook { return next }

func (answerInfo) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (a answerInfo) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() != "info" {
			return next(ctx, cmd)
		}
		cmd.(interface{ SetVal(any) }).SetVal(string(a))
		return nil
	}
}

// An old server whose version cannot be read does not know ZMSCORE.
func TestCheckNamesTheVersionWhereACommandIsMissing(t *testing.T) {
	t.Parallel()
	b := setupReal(t, "--rename-command", "ZMSCORE", "")
	_, err := b.Check(t.Context())
	require.ErrorIs(t, err, persist.ErrFatal)
	require.ErrorContains(t, err, "6.2")
	b.requireEmpty(t)
}
