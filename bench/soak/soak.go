package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/orderwheel/orderwheel"
)

// Bounds of a hang.
const (
	drainsWithin = time.Minute
	stopsWithin  = time.Minute
)

// withServer soaks on a redis-server of its own, and looks for what is left behind.
func withServer(ctx context.Context, o options, out, progress io.Writer) error {
	dir, err := os.MkdirTemp("", "orderwheel-soak-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	server, err := startRedis(ctx, dir)
	if err != nil {
		return err
	}
	defer server.stop()
	before := runtime.NumGoroutine()
	err = soak(ctx, o, server.addr, out, progress)
	if left := goroutinesAbove(before); left > 0 {
		err = errors.Join(err, fmt.Errorf("%d goroutines are left after Stop", left))
	}
	return err
}

// soak runs the load on the Redis at addr and judges. The error says all that was wrong.
func soak(ctx context.Context, o options, addr string, out, progress io.Writer) error {
	// What watches has a client of its own, which is there all the time.
	watcher := newClient(addr)
	defer watcher.Close()
	if err := watcher.Ping(ctx).Err(); err != nil {
		return err
	}
	s := newSamples(o.d, progress)
	if err := underLoad(ctx, o, addr, watcher, s, out); err != nil {
		return err
	}
	return errors.Join(s.judge(out)...)
}

// underLoad runs an engine under load for as long as o says, and stops it.
func underLoad(ctx context.Context, o options, addr string, watcher *redis.Client, s *samples, out io.Writer) error {
	client := newClient(addr)
	defer client.Close()
	l := newLedger()
	eng, err := orderwheel.New(orderwheel.Config{
		Redis:   client,
		Handler: l.handle,
		Retry:   orderwheel.Retry{Base: 100 * time.Millisecond, Cap: time.Second},
	})
	if err != nil {
		return err
	}
	if err := eng.Start(ctx); err != nil {
		return err
	}
	runCtx, cancel := context.WithTimeout(ctx, o.d)
	defer cancel()
	burstErr := burst(ctx, eng, l, o)
	load := startLoad(runCtx, ctx, eng, l, o)
	watchErr := s.watch(runCtx, func(ctx context.Context) (figures, error) { return look(ctx, watcher, l) })
	cancel()
	loadErr := load.wait()
	drainErr := l.drain(ctx)

	stopCtx, cancelStop := context.WithTimeout(context.WithoutCancel(ctx), stopsWithin)
	defer cancelStop()
	stopErr := eng.Stop(stopCtx)
	fmt.Fprintln(out, l.summary())
	return errors.Join(ctx.Err(), burstErr, watchErr, loadErr, drainErr, stopErr, l.faults())
}

// goroutinesAbove is how many goroutines there are beyond n. Those that have been told
// to end may take a moment.
func goroutinesAbove(n int) int {
	for end := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > n && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	return max(runtime.NumGoroutine()-n, 0)
}
