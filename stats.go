package orderwheel

import (
	"github.com/orderwheel/orderwheel/executor"
	"github.com/orderwheel/orderwheel/recovery"
)

// Stats is what the engine has done since Start, counted locally.
type Stats struct {
	Armed    int // ids in this engine's wheel
	Executor executor.Stats
	Recovery recovery.Stats
}

// Stats reads the counters. It asks nothing of Redis and costs the same however
// much is pending. While the engine is not running it is zero.
func (e *Engine) Stats() Stats {
	r := e.cur.Load()
	if r == nil {
		return Stats{}
	}
	return Stats{Armed: r.board.Armed(), Executor: r.exec.Stats(), Recovery: r.rec.Stats()}
}
