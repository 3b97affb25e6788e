// Package loopback helps programs that start a Redis of their own on this machine.
// Tests have package redistest.
package loopback

import (
	"context"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
)

// FreeAddr is an address on which nobody listens now.
func FreeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// WaitRedis waits until the Redis at addr answers. When ctx ends first it returns what the
// last try met.
func WaitRedis(ctx context.Context, addr string) error {
	client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, ContextTimeoutEnabled: true})
	defer client.Close()
	for {
		err := client.Ping(ctx).Err()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(10 * time.Millisecond):
		}
	}
}
