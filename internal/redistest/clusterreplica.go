package redistest

import "time"

// votedWithin is how long Redis gives a failover that was asked for. If the votes do not
// come in time it is forgotten, and nobody is told.
const votedWithin = 5 * time.Second

// StartReplica starts a replica of a master, with the arguments of the others, and
// waits until it has what the master has, and all nodes know it.
func (c *Cluster) StartReplica(of *Server) *Server {
	c.t.Helper()
	s := start(c.t, node, c.args)
	id := of.nodeID()
	c.nodes = append(c.nodes, s)
	c.introduce(len(c.nodes) - 1)
	c.WaitReady()
	s.must("CLUSTER", "REPLICATE", id)
	s.WaitLink()
	of.waitOnline(s)
	c.WaitReady()
	return s
}

// Failover makes a replica the master in place of another, which becomes its replica: at
// once and without a loss where the old master runs, else as soon as the others
// hold that one to be dead. It returns when all nodes that run agree.
func (c *Cluster) Failover(from, to *Server) {
	c.t.Helper()
	if from.runs() {
		c.handOver(from, to)
	}
	c.mu.Lock()
	for i, s := range c.mu.masters {
		if s == from {
			c.mu.masters[i] = to
		}
	}
	for slot, s := range c.mu.owner {
		if s == from {
			c.mu.owner[slot] = to
		}
	}
	c.mu.Unlock()
	c.WaitReady()
}

// handOver asks for a failover until it has happened.
func (c *Cluster) handOver(from, to *Server) {
	c.t.Helper()
	from.waitOnline(to)
	to.must("CLUSTER", "FAILOVER")
	asked := time.Now()
	to.waitInfo("its new role", func(info map[string]string) bool {
		if info["role"] != "master" && time.Since(asked) > votedWithin+time.Second {
			to.must("CLUSTER", "FAILOVER")
			asked = time.Now()
		}
		return info["role"] == "master"
	})
}
