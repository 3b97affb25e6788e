package executor

// Stats counts since Start. It is local and costs the same however much is pending.
type Stats struct {
	Ready    int // tasks that are due and wait for a worker, claimed ahead of it or not
	Running  int // tasks that are being claimed, or with the handler
	Stuck    int // calls of the handler that have not returned though their lease is over
	Awaiting int // tasks that are due and wait for a claim from a shard of the store that is away

	Unclaimed uint64 // runs without a claim, while the store was away; not in Lateness until claimed

	Done      uint64 // acknowledged
	Failed    uint64 // attempts that ended in an error, a panic or a timeout
	Panicked  uint64 // of these, panics and runtime.Goexit
	TimedOut  uint64 // of these, errors after HandlerTimeout, or when the lease was lost
	Retried   uint64 // put back after a failed attempt
	Dead      uint64 // buried: the last attempt failed, or an error was permanent
	Postponed uint64 // put back by RetryAt
	Cancelled uint64 // failed or postponed, and cancelled meanwhile: not put back
	LeaseLost uint64 // answers refused: the lease was over, or the task was handed to another

	NotYet uint64 // claims refused because the task was due later
	Busy   uint64 // claims refused because another had it
	Gone   uint64 // claims refused because it was cancelled or done

	Lateness Lateness // of first attempts
}

// Stats reads the counters.
func (e *Executor) Stats() Stats {
	e.mu.Lock()
	ready, running := e.mu.fresh.len()+e.mu.backlog.len()+e.waitingLocked(), e.mu.running
	stuck, awaiting := e.mu.stuck, e.awaitingLocked()
	e.mu.Unlock()
	return Stats{
		Ready:     ready,
		Running:   running,
		Stuck:     stuck,
		Awaiting:  awaiting,
		Unclaimed: e.stats.unclaimed.Load(),
		Done:      e.stats.done.Load(),
		Failed:    e.stats.failed.Load(),
		Panicked:  e.stats.panicked.Load(),
		TimedOut:  e.stats.timedOut.Load(),
		Retried:   e.stats.retried.Load(),
		Dead:      e.stats.dead.Load(),
		Postponed: e.stats.postponed.Load(),
		Cancelled: e.stats.cancelled.Load(),
		LeaseLost: e.stats.leaseLost.Load(),
		NotYet:    e.stats.notYet.Load(),
		Busy:      e.stats.busy.Load(),
		Gone:      e.stats.gone.Load(),
		Lateness:  e.stats.late.snapshot(),
	}
}
