// Command shop is an order app that embeds orderwheel: see its README, and `go run ./examples/shop
// -h`.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
)

// How long the end may take: first the requests under way, then the closes. Together less than
// Kubernetes waits before it kills, 30s.
const (
	answerWithin = 16 * time.Second
	stopWithin   = 10 * time.Second
)

func main() {
	redis.SetLogger(&logging.VoidLogger{}) // what matters comes as an error
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal kills
	o, err := parseFlags(os.Args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Print(usage)
		return
	case err != nil:
		fmt.Fprintf(os.Stderr, "shop: %v\n", err)
		os.Exit(2)
	}
	if err := run(ctx, o, os.Stderr); err != nil {
		fmt.Fprintf(os.Stderr, "shop: %v\n", err)
		os.Exit(1)
	}
}

// run serves until ctx ends, and then winds up: nothing that was answered is undone, and what has
// not been closed stays in Redis.
func run(ctx context.Context, o options, logs io.Writer) (err error) {
	log := slog.New(slog.NewTextHandler(logs, nil))
	a, closeApp, err := openApp(ctx, o, log)
	defer func() { err = errors.Join(err, closeApp()) }()
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", o.addr)
	if err != nil {
		return fmt.Errorf("-addr is %q: %w: give one that is free here", o.addr, err)
	}
	log.Info("listening", slog.String("url", "http://"+listener.Addr().String()),
		slog.String("trigger", string(o.trigger)), slog.Int("engine_percent", int(o.share)))

	server := &http.Server{
		Handler:           a.handler(),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       15 * time.Second,
		WriteTimeout:      25 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	log.Info("stopping")
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerWithin)
	defer cancel()
	if err := server.Shutdown(ending); err != nil {
		return errors.Join(fmt.Errorf("requests were cut off: %w", err), server.Close())
	}
	log.Info("requests_answered")
	return nil
}
