package persist

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Check asks Redis, before anything depends on it, whether it can hold the tasks.
//
// An error is returned when it cannot: a version below 6.2, a command that our
// scripts need and that is unknown or forbidden, an eviction policy that may drop
// our keys, a number of shards that is not the one stored. Errors of the network
// are repeated until ctx ends, as in every call.
//
// Warnings say, in words, what works but may cost tasks or time: no append-only
// file, a client that does not listen to ctx, a server that refuses writes just now, and
// whatever could not be read (managed Redis forbids some commands, miniredis
// lacks them).
func (r *Redis) Check(ctx context.Context) (warnings []string, err error) {
	warnings = clientWarnings(r.client)
	nodes, err := r.infos(ctx)
	if err != nil {
		return warnings, err
	}
	var faults []error
	for _, node := range nodes {
		w, err := node.check(r.shards[0].wait)
		warnings = append(warnings, w...)
		faults = append(faults, err)
	}
	if r.isClusterNode(nodes) {
		warnings = append(warnings, "this server is a node of a Cluster, but the client is not: use redis.NewClusterClient")
	}
	if err := errors.Join(faults...); err != nil {
		return warnings, err
	}
	w, err := r.probe(ctx)
	return append(warnings, w...), err
}

// sessionUnused is how long a session is kept that nobody uses: far longer than any
// network holds back a copy of a write.
const sessionUnused = 24 * time.Hour

// probe runs the commands that the scripts need, on the server of each shard. It does
// not wait for a server that refuses writes: what is stored can be worked off meanwhile.
func (r *Redis) probe(ctx context.Context) (warnings []string, err error) {
	first, err := r.shards[0].probe(ctx, len(r.shards)) // else a wrong number would be stored in the others
	if err != nil {
		return nil, err
	}
	each, err := onShards(r, func(s *shard) (string, error) {
		if s.number == 0 {
			return first, nil
		}
		return s.probe(ctx, len(r.shards))
	})
	for _, w := range each {
		if w != "" && !slices.Contains(warnings, w) {
			warnings = append(warnings, w)
		}
	}
	return warnings, err
}

func (s *shard) probe(ctx context.Context, shards int) (warning string, err error) {
	a, err := s.repeat(ctx, probeScript.name, false, func() answer {
		a := s.try(ctx, func() answer {
			return s.eval(ctx, probeScript, []any{sessionUnused.Milliseconds(), shards})
		})
		if a.err != nil && classify(a.err, s.cluster) == degraded {
			warning = fmt.Sprintf("Redis refuses writes at the moment: %v", a.err)
			return answer{}
		}
		return a
	})
	if err != nil {
		return warning, fmt.Errorf("%w (Redis 6.2 or later is needed, and permission for scripts and for the commands in them)", err)
	}
	if stored, ok := a.value.(string); ok && stored != strconv.Itoa(shards) {
		return warning, fmt.Errorf("persist: check: %w: Shards is %d, but the tasks of this namespace are stored in %s: use that, "+
			"or another Namespace; or let all of them end and remove the key %s", ErrFatal, shards, stored, s.keys.shards)
	}
	return warning, nil
}

// nodeInfo is what one server says about itself: the fields of INFO, or why it
// does not say.
type nodeInfo struct {
	addr   string // empty for a client of a single server
	fields map[string]string
	err    error
}

// infos reads INFO of each server that may hold tasks. A server that refuses it
// is no error; one that does not answer is.
func (r *Redis) infos(ctx context.Context) ([]nodeInfo, error) {
	cluster, ok := r.client.(*redis.ClusterClient)
	if !ok {
		node, err := r.info(ctx, r.client)
		return []nodeInfo{node}, err
	}
	var mu sync.Mutex
	var nodes []nodeInfo
	_, err := r.shards[0].repeat(ctx, "check", false, func() answer {
		return r.shards[0].try(ctx, func() answer {
			mu.Lock()
			nodes = nil
			mu.Unlock()
			return answer{err: cluster.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error {
				node, err := r.info(ctx, c)
				node.addr = c.Options().Addr
				mu.Lock()
				defer mu.Unlock()
				nodes = append(nodes, node)
				return err
			})}
		})
	})
	mu.Lock()
	defer mu.Unlock()
	return nodes, err
}

// info reads INFO of one server.
func (r *Redis) info(ctx context.Context, client processor) (nodeInfo, error) {
	a, err := r.shards[0].repeat(ctx, "check", false, func() answer {
		return r.shards[0].try(ctx, func() answer { return send(ctx, client, []any{"info"}) })
	})
	var reply redis.Error
	if err != nil && (!errors.As(err, &reply) || ctx.Err() != nil) {
		return nodeInfo{}, err
	}
	if err != nil {
		return nodeInfo{err: reply}, nil
	}
	text, _ := a.value.(string)
	return nodeInfo{fields: parseInfo(text)}, nil
}

// parseInfo reads the lines key:value of INFO.
func parseInfo(text string) map[string]string {
	fields := make(map[string]string)
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[key] = value
		}
	}
	return fields
}

// check judges one server.
func (n nodeInfo) check(wait durability) (warnings []string, err error) {
	if n.err != nil {
		return []string{n.name() + "INFO cannot be read, so version, eviction policy and persistence were not checked: " + n.err.Error()}, nil
	}
	w1, err1 := n.checkVersion(wait.fsync)
	w2, err2 := n.checkEviction()
	w3, err3 := n.checkAOF(wait.fsync)
	w4 := n.checkReplicas(wait.replicas)
	for _, w := range []string{w1, w2, w3, w4} {
		if w != "" {
			warnings = append(warnings, n.name()+w)
		}
	}
	return warnings, errors.Join(err1, err2, err3)
}

func (n nodeInfo) name() string {
	if n.addr == "" {
		return ""
	}
	return n.addr + ": "
}

// checkVersion: WAITAOF came with 7.2.
func (n nodeInfo) checkVersion(fsync bool) (warning string, err error) {
	needed, why := [2]int{6, 2}, ""
	if fsync {
		needed, why = [2]int{7, 2}, ", which WaitFsync needs, or do without it"
	}
	version := n.fields["redis_version"]
	var has [2]int
	if n, _ := fmt.Sscanf(version, "%d.%d", &has[0], &has[1]); n != 2 {
		return fmt.Sprintf("the version %q cannot be read; %d.%d or later is needed", version, needed[0], needed[1]), nil
	}
	if slices.Compare(has[:], needed[:]) < 0 {
		return "", fmt.Errorf("persist: check: %w: %sRedis is %s: use %d.%d or later%s", ErrFatal, n.name(), version, needed[0], needed[1], why)
	}
	return "", nil
}

// checkEviction: the policies allkeys-* drop any key when memory is full; volatile-*
// only keys with a TTL, which ours have not.
func (n nodeInfo) checkEviction() (warning string, err error) {
	policy, ok := n.fields["maxmemory_policy"]
	switch {
	case !ok:
		return "the eviction policy (maxmemory-policy) cannot be read; allkeys-* would drop tasks", nil
	case !strings.HasPrefix(policy, "allkeys-"):
		return "", nil
	case n.fields["maxmemory"] == "0":
		return fmt.Sprintf("maxmemory-policy is %s and would drop tasks as soon as maxmemory is set: use noeviction", policy), nil
	}
	return "", fmt.Errorf("persist: check: %w: %smaxmemory-policy is %s, which drops tasks when memory is full: use noeviction", ErrFatal, n.name(), policy)
}

func (n nodeInfo) checkAOF(fsync bool) (warning string, err error) {
	switch enabled := n.fields["aof_enabled"]; {
	case enabled == "1":
		return "", nil
	case enabled == "0" && fsync:
		return "", fmt.Errorf("persist: check: %w: %sWaitFsync waits for the append-only file, but there is none: set appendonly yes", ErrFatal, n.name())
	case enabled == "0":
		return "there is no append-only file, so a crash of Redis loses the tasks written since its last snapshot: set appendonly yes", nil
	}
	return "whether there is an append-only file cannot be read; without one a crash of Redis loses tasks", nil
}

func (n nodeInfo) checkReplicas(want int) (warning string) {
	if got, err := strconv.Atoi(n.fields["connected_slaves"]); want > 0 && (err != nil || got < want) {
		return fmt.Sprintf("WaitReplicas is %d, but %q replicas are connected: every write of users will end in ErrNotReplicated", want, n.fields["connected_slaves"])
	}
	return ""
}

// isClusterNode reports whether a single client talks to a node of a Cluster.
func (r *Redis) isClusterNode(nodes []nodeInfo) bool {
	_, single := r.client.(*redis.Client)
	return single && len(nodes) == 1 && nodes[0].fields["redis_mode"] == "cluster"
}

// clientWarnings looks at the options of a client that we depend on.
func clientWarnings(client redis.UniversalClient) (warnings []string) {
	var listens bool
	var readTimeout int64
	switch c := client.(type) {
	case *redis.Client:
		listens, readTimeout = c.Options().ContextTimeoutEnabled, int64(c.Options().ReadTimeout)
	case *redis.ClusterClient:
		listens, readTimeout = c.Options().ContextTimeoutEnabled, int64(c.Options().ReadTimeout)
	default:
		return []string{fmt.Sprintf("the options of a %T cannot be read: it should have ContextTimeoutEnabled and a ReadTimeout", client)}
	}
	if !listens {
		warnings = append(warnings, "the client's ContextTimeoutEnabled is off: a call whose deadline has passed keeps its connection until ReadTimeout; set it")
	}
	if readTimeout <= 0 {
		warnings = append(warnings, "the client has no ReadTimeout: a connection that hangs is never given up; set it")
	}
	return warnings
}
