package redistest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Sentinels watch a server and its replicas, and promote a replica when the server is
// down. Each is a Server, which can be killed, paused and restarted.
type Sentinels struct {
	t     testing.TB
	nodes []*Server
}

const (
	sentinelConfig = "sentinel.conf" // in the folder of the server
	primaryName    = "main"

	// sentinelsWithin bounds how long Sentinels may take: they greet each other every two
	// seconds, and a failover whose vote has failed begins again seconds later.
	sentinelsWithin = 60 * time.Second
)

// StartSentinels starts n Sentinels that watch a server, and waits until each knows
// the others and the replicas, which have to be there already. Most of them must
// agree that the server is down, for half a second, before they promote another.
func StartSentinels(t testing.TB, n int, of *Server, replicas int) *Sentinels {
	t.Helper()
	s := &Sentinels{t: t}
	for range n {
		s.nodes = append(s.nodes, start(t, sentinel, []string{
			fmt.Sprintf("sentinel monitor %s 127.0.0.1 %d %d", primaryName, of.port, n/2+1),
			"sentinel down-after-milliseconds " + primaryName + " 500",
			"sentinel failover-timeout " + primaryName + " 3000",
		}))
	}
	want := fmt.Sprintf("status=ok,address=%s,slaves=%d,sentinels=%d", of.Addr(), replicas, n)
	s.wait(want)
	return s
}

// configure writes the file that a Sentinel reads, and writes by itself later.
func (s *Server) configure() error {
	if s.kind != sentinel {
		return nil
	}
	lines := slices.Concat([]string{fmt.Sprint("port ", s.port), "bind 127.0.0.1", "dir " + s.dir}, s.args)
	return os.WriteFile(filepath.Join(s.dir, sentinelConfig), []byte(strings.Join(lines, "\n")+"\n"), 0o600)
}

// Nodes returns the Sentinels.
func (s *Sentinels) Nodes() []*Server { return slices.Clone(s.nodes) }

// Options are those of a client that asks the Sentinels where the primary is. It
// listens to ctx.
func (s *Sentinels) Options() *redis.FailoverOptions {
	addrs := make([]string, len(s.nodes))
	for i, one := range s.nodes {
		addrs[i] = one.Addr()
	}
	return &redis.FailoverOptions{MasterName: primaryName, SentinelAddrs: addrs, ContextTimeoutEnabled: true}
}

// Client returns a new client with these Options, closed when t ends.
func (s *Sentinels) Client(t testing.TB) *redis.Client {
	t.Helper()
	c := redis.NewFailoverClient(s.Options())
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// WaitPrimary waits until the Sentinels that run hold a server to be the primary, and up.
func (s *Sentinels) WaitPrimary(of *Server) {
	s.t.Helper()
	s.wait("status=ok,address=" + of.Addr() + ",")
}

// wait waits until each Sentinel that runs says so in INFO.
func (s *Sentinels) wait(want string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), sentinelsWithin)
	defer cancel()
	for _, one := range s.nodes {
		for one.runs() {
			info, err := one.control().Info(ctx, "sentinel").Result()
			if strings.Contains(info, want) {
				break
			}
			if ctx.Err() != nil {
				s.t.Fatalf("redistest: the Sentinel at %s does not say %q within %v: %v\n%s", one.Addr(), want, sentinelsWithin, err, info)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
}
