// Package bench measures orderwheel, and what else could do its job beside it,
// in the same run: a ratio says more than a figure, since no two machines are
// alike.
//
//	bench/wheel.sh              the wheels: a table with the ratios, medians of 5
//	go run ./bench/deadlock     hangs RussellLuo's timing wheel, and shows how
//
//	go test ./bench -run '^$' -bench 'Store|Redis' -benchtime 100000x -count 5
//
// measures the store on a private redis-server, and plain commands on the same
// beside it.
//
// With -short the benchmarks are small enough to see in a moment that they
// work; their figures then mean nothing.
package bench
