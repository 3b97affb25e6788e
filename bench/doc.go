// Package bench measures orderwheel, and what else could do its job beside it,
// in the same run: a ratio says more than a figure, since no two machines are
// alike.
//
//	bench/wheel.sh              the wheels: a table with the ratios, medians of 5
//	bench/engine.sh             the whole engine and its rivals, in the same way
//	go run ./bench/schemes      what articles on order timeouts teach, side by side
//	go run ./bench/soak         mixed load for half an hour: nothing may grow
//	go run ./bench/deadlock     hangs RussellLuo's timing wheel, and shows how
//
//	go test ./bench -run '^$' -bench 'Store|Redis' -benchtime 100000x -count 5
//
// measures the store on a private redis-server, and plain commands on the same
// beside it.
//
// The engine is measured with its defaults, 64 workers among them, and a handler
// that does nothing:
//
//   - op=fire has ids fire at a steady rate, all scheduled before. How late they are
//     is told beside a canary, a goroutine of the same process that sleeps for a
//     millisecond again and again: the process can be no more punctual than that.
//     Beside it a poller fires the same load, and in the nested module bench/peers
//     asynq does;
//   - op=storm has ids that are all due in one millisecond: done-ms is when the last
//     ack was answered;
//   - op=schedule has many callers schedule one id each, again and again;
//   - op=recover starts an engine on what another has left.
//
// The last three are told as a part of what the same server did just before for one
// client with nothing else to do: pipelines of ZADDs, or a ZRANGE after the other.
//
// With -short the benchmarks are small enough to see in a moment that they
// work; their figures then mean nothing.
package bench
