package redistest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Cluster is a private Redis Cluster. Its methods fail the test by t.Fatal
// where a server does not obey, so call them from the test's own goroutine; NodeOf
// and Nodes may be called from any.
type Cluster struct {
	t     testing.TB
	args  []string
	nodes []*Server // masters and replicas

	mu struct {
		sync.Mutex
		masters []*Server
		owner   [Slots]*Server
	}
}

// clusterReadyWithin bounds how long the nodes may take until they agree. A Redis
// that starts waits two seconds by itself until it says that its cluster is ok.
const clusterReadyWithin = 30 * time.Second

// StartCluster starts a Redis Cluster of so many masters, with the slots spread evenly,
// and waits until each of them knows all others and serves. Of three or more masters
// one may be away: the slots of the others are served meanwhile. args are
// those of each server, as in Start.
//
// Each node is a Server: it can be killed, paused and restarted, and is then the
// same node of the Cluster. (Its keys survive if args let them.)
func StartCluster(t testing.TB, masters int, args ...string) *Cluster {
	t.Helper()
	if masters < 1 || masters > Slots {
		t.Fatalf("redistest: a Cluster of %d masters", masters)
	}
	c := &Cluster{t: t}
	c.args = append([]string{"--cluster-require-full-coverage", "no", "--cluster-node-timeout", "2000"}, args...)
	for range masters {
		c.nodes = append(c.nodes, start(t, node, c.args))
	}
	c.mu.masters = slices.Clone(c.nodes)
	for i, s := range c.nodes {
		first, end := i*Slots/masters, (i+1)*Slots/masters
		s.must("CLUSTER", "ADDSLOTSRANGE", first, end-1)
		s.must("CLUSTER", "SET-CONFIG-EPOCH", i+1)
		for slot := first; slot < end; slot++ {
			c.mu.owner[slot] = s
		}
	}
	c.meet()
	c.WaitReady()
	return c
}

// meet introduces the nodes to each other.
func (c *Cluster) meet() {
	c.t.Helper()
	for i := range c.nodes {
		c.introduce(i)
	}
}

// introduce introduces a node to those before it.
func (c *Cluster) introduce(i int) {
	c.t.Helper()
	for _, other := range c.nodes[:i] {
		c.nodes[i].must("CLUSTER", "MEET", "127.0.0.1", other.port, other.bus)
	}
}

// Nodes returns the masters, in the order of the slots that they got at first.
func (c *Cluster) Nodes() []*Server {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.mu.masters)
}

// NodeOf returns the master that has the slot of a key, whether it runs or not.
func (c *Cluster) NodeOf(key string) *Server {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.owner[Slot(key)]
}

// Client returns a new client of the Cluster, closed when t ends. It listens to ctx,
// as Server.Client.
func (c *Cluster) Client(t testing.TB) *redis.ClusterClient {
	t.Helper()
	addrs := make([]string, len(c.nodes))
	for i, s := range c.nodes {
		addrs[i] = s.Addr()
	}
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs, ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// WaitReady waits until the nodes that run say that the Cluster is ok, agree who has
// which slot, and hold none of them to be failing. Nodes that were killed or paused are
// left out.
func (c *Cluster) WaitReady() {
	c.t.Helper()
	met := time.Now()
	for end := met.Add(clusterReadyWithin); ; {
		err := c.notReady()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			c.t.Fatalf("redistest: the Cluster is not ready within %v: %v", clusterReadyWithin, err)
		}
		if errors.Is(err, errUnmet) && c.allRun() && time.Since(met) > 3*time.Second {
			met = time.Now() // on a busy machine a handshake may time out
			c.meet()
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (c *Cluster) allRun() bool {
	return !slices.ContainsFunc(c.nodes, func(s *Server) bool { return !s.runs() })
}

var errUnmet = errors.New("the nodes do not know each other")

// notReady says why the Cluster is not ready, nil if it is.
func (c *Cluster) notReady() error {
	for _, s := range c.nodes {
		if !s.runs() {
			continue
		}
		if err := c.notReadyOn(s); err != nil {
			return fmt.Errorf("%s: %w", s.Addr(), err)
		}
	}
	return nil
}

// notReadyOn asks one node what it thinks of all.
func (c *Cluster) notReadyOn(s *Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	info, err := s.control().ClusterInfo(ctx).Result()
	if err != nil {
		return err
	}
	if !strings.Contains(info, "cluster_state:ok") {
		return fmt.Errorf("cluster_state is not ok:\n%s", info)
	}
	known, err := s.control().ClusterNodes(ctx).Result()
	if err != nil {
		return err
	}
	if err := c.notKnown(known); err != nil {
		return fmt.Errorf("%w:\n%s", err, known)
	}
	shards, err := s.control().ClusterShards(ctx).Result()
	if err != nil {
		return err
	}
	return c.notAgreed(shards)
}

// notKnown says which node is missing in CLUSTER NODES, or not sound there: its lines
// are "id ip:port@bus flags master ping pong epoch link slots...".
func (c *Cluster) notKnown(text string) error {
	sound := make(map[string]bool)
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 8 {
			return fmt.Errorf("CLUSTER NODES has the line %q", line)
		}
		_, port, _ := strings.Cut(f[1], ":")
		port, _, _ = strings.Cut(port, "@")
		sound[port] = f[7] == "connected" && !strings.Contains(f[2], "fail") && !strings.Contains(f[2], "handshake")
	}
	if len(sound) != len(c.nodes) {
		return fmt.Errorf("%w: %d of %d are known", errUnmet, len(sound), len(c.nodes))
	}
	for _, s := range c.nodes {
		if s.runs() && !sound[strconv.Itoa(s.port)] {
			return fmt.Errorf("%s is not sound", s.Addr())
		}
	}
	return nil
}

// notAgreed says which slot is not where it should be.
func (c *Cluster) notAgreed(shards []redis.ClusterShard) error {
	var at [Slots]int64 // port
	for _, shard := range shards {
		for _, n := range shard.Nodes {
			if n.Role != "master" || n.Health != "online" {
				continue
			}
			for _, r := range shard.Slots {
				for slot := r.Start; slot <= r.End; slot++ {
					at[slot] = n.Port
				}
			}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for slot, s := range c.mu.owner {
		if at[slot] != int64(s.port) {
			return fmt.Errorf("slot %d is at port %d, not %d", slot, at[slot], s.port)
		}
	}
	return nil
}
