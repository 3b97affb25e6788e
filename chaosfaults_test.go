package orderwheel_test

import (
	"context"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/internal/faultproxy"
)

// fault lets one thing go wrong for a moment, and says what.
func (c *chaos) fault() string {
	moment := 50*time.Millisecond + c.ms(400)
	switch c.n(11) {
	case 0:
		c.server.Pause()
		time.Sleep(moment)
		c.server.Resume()
		return "Redis is paused"
	case 1:
		c.do("CLIENT", "KILL", "TYPE", "normal")
		return "connections are cut"
	case 2:
		c.do("SCRIPT", "FLUSH")
		return "scripts are forgotten"
	case 3:
		c.during(moment, []any{"CONFIG", "SET", "maxmemory", "1"}, []any{"CONFIG", "SET", "maxmemory", "0"})
		return "OOM"
	case 4:
		c.during(moment, []any{"REPLICAOF", "127.0.0.1", "1"}, []any{"REPLICAOF", "NO", "ONE"})
		return "READONLY"
	case 5:
		c.during(moment, []any{"CONFIG", "SET", "min-replicas-to-write", "1"}, []any{"CONFIG", "SET", "min-replicas-to-write", "0"})
		return "NOREPLICAS"
	case 6:
		c.during(moment, []any{"ACL", "SETUSER", "default", "-eval", "-evalsha"}, []any{"ACL", "SETUSER", "default", "+eval", "+evalsha"})
		return "NOPERM"
	case 7:
		c.server.Restart() // appendfsync always: it loses nothing
		return "Redis is killed and restarted"
	case 8:
		c.restartEngine()
		return "an engine is restarted"
	case 9:
		c.proxy.HangAll()
		return "connections are half open"
	}
	c.proxy.SetRule(faultproxy.Random(uint64(c.n(1<<30)), 0.3, faultproxy.Do(faultproxy.DropReply), faultproxy.Do(faultproxy.CutRequest),
		faultproxy.Do(faultproxy.Twice), faultproxy.Do(faultproxy.HoldAndCut), faultproxy.Do(faultproxy.CutReply),
		faultproxy.Do(faultproxy.Hang), faultproxy.Do(faultproxy.SwallowReply)))
	time.Sleep(moment)
	c.proxy.SetRule(nil)
	c.proxy.ReleaseHeld()
	return "commands and answers are lost, late or doubled"
}

func (c *chaos) do(args ...any) {
	require.NoError(c.t, c.control.Do(context.Background(), args...).Err(), args)
}

func (c *chaos) during(moment time.Duration, begin, end []any) {
	c.do(begin...)
	time.Sleep(moment)
	c.do(end...)
}

// restartEngine stops an engine in less time than its handlers may need, and starts it.
func (c *chaos) restartEngine() {
	eng := c.engine()
	for stopped := false; !stopped; {
		ctx, cancel := context.WithTimeout(context.Background(), c.ms(100))
		stopped = eng.Stop(ctx) == nil
		cancel()
	}
	require.NoError(c.t, eng.Start(context.Background()))
}
