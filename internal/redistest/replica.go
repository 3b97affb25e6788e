package redistest

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

// linkWithin bounds how long a replica may take to copy what its primary has.
const linkWithin = 30 * time.Second

// StartReplica starts a replica of a server and waits until it has what the
// server has, and follows it. args are as in Start.
func StartReplica(t testing.TB, of *Server, args ...string) *Server {
	t.Helper()
	s := Start(t, args...)
	s.ReplicaOf(of)
	s.WaitLink()
	of.waitOnline(s)
	return s
}

// ReplicaOf makes s a replica of another server: it drops what it has, and takes what that
// one has as soon as it can. It does not wait for that: WaitLink does.
func (s *Server) ReplicaOf(of *Server) {
	s.t.Helper()
	s.must("REPLICAOF", "127.0.0.1", of.port)
	s.setPrimary(of)
}

// Promote makes a replica a server of its own, with what it has.
func (s *Server) Promote() {
	s.t.Helper()
	s.must("REPLICAOF", "NO", "ONE")
	s.setPrimary(nil)
}

func (s *Server) setPrimary(of *Server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.of = of
}

// WaitLink waits until s, a replica, has what its primary had, and follows it.
func (s *Server) WaitLink() {
	s.t.Helper()
	s.waitInfo("its link to be up", func(info map[string]string) bool { return info["master_link_status"] == "up" })
}

// waitOnline waits until s knows that a replica follows it, which is a moment after the
// replica does.
func (s *Server) waitOnline(replica *Server) {
	s.t.Helper()
	want := fmt.Sprintf("port=%d,state=online", replica.port)
	s.waitInfo("a replica", func(info map[string]string) bool {
		for key, value := range info {
			if strings.HasPrefix(key, "slave") && strings.Contains(value, want) {
				return true
			}
		}
		return false
	})
}

// WaitSame waits until s, a replica, has all that its primary has now.
func (s *Server) WaitSame(primary *Server) {
	s.t.Helper()
	var want int64
	primary.waitInfo("its offset", func(info map[string]string) bool {
		want = offset(info["master_repl_offset"])
		return true
	})
	s.waitInfo("what its primary has", func(info map[string]string) bool {
		return info["role"] == "slave" && offset(info["slave_repl_offset"]) >= want
	})
}

// offset reads an offset of the replication; -1 where there is none.
func offset(digits string) int64 {
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// Failover makes a replica of s the primary, and s its replica, without a loss: s
// keeps its clients waiting until the other has all that s has. (Redis 6.2 or later.)
// It returns when it is done.
func (s *Server) Failover(to *Server) {
	s.t.Helper()
	s.waitOnline(to)
	s.must("FAILOVER", "TO", "127.0.0.1", to.port, "TIMEOUT", linkWithin.Milliseconds())
	s.waitInfo("its new role", func(info map[string]string) bool { return info["role"] == "slave" })
	to.waitInfo("its new role", func(info map[string]string) bool { return info["role"] == "master" })
	to.setPrimary(nil)
	s.setPrimary(to)
}

// waitInfo waits until what INFO replication says is enough.
func (s *Server) waitInfo(what string, enough func(info map[string]string) bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), linkWithin)
	defer cancel()
	for {
		text, err := s.control().Info(ctx, "replication").Result()
		info := make(map[string]string)
		for line := range strings.Lines(text) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			info[key] = value
		}
		if err == nil && enough(info) {
			return
		}
		if ctx.Err() != nil {
			s.t.Fatalf("redistest: %s waits for %s for more than %v: %v\n%s", s.Addr(), what, linkWithin, err, text)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
