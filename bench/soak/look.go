package main

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// look takes the figures of this moment.
func look(ctx context.Context, watcher *redis.Client, l *ledger) (figures, error) {
	info, err := watcher.Info(ctx, "clients", "memory").Result()
	if err != nil {
		return figures{}, err
	}
	connections, err := infoNumber(info, "connected_clients")
	if err != nil {
		return figures{}, err
	}
	memory, err := infoNumber(info, "used_memory")
	if err != nil {
		return figures{}, err
	}
	runtime.GC() // else the heap is mostly what is garbage already
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return figures{float64(m.HeapAlloc), float64(runtime.NumGoroutine()), connections, memory, float64(l.size())}, nil
}

// infoNumber reads one line of what INFO answers.
func infoNumber(info, field string) (float64, error) {
	for line := range strings.SplitSeq(info, "\r\n") {
		if v, ok := strings.CutPrefix(line, field+":"); ok {
			return strconv.ParseFloat(v, 64)
		}
	}
	return 0, fmt.Errorf("INFO does not tell %s", field)
}
