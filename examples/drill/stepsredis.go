package main

import (
	"context"
	"strings"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// phase is what the engine of a worker is doing as a whole.
type phase int32

const (
	running phase = iota
	rebuilding
	stopping
)

// redisSteps is a hook of the Redis client. It passes the steps that lie behind
// an answer of Redis.
type redisSteps struct {
	steps *steps
	phase *atomic.Int32
}

func (h redisSteps) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h redisSteps) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		if err == nil && ours(cmds[0]) {
			h.passPhase()
		}
		return err
	}
}

func (h redisSteps) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if err != nil || !ours(cmd) {
			return err
		}
		h.passPhase()
		if schedules(cmd.Args()) {
			h.steps.pass(scheduleWheel)
		}
		return nil
	}
}

// ours reports whether the engine sent a command: a script, or what forgets a
// session. The client itself sends others as it connects.
func ours(cmd redis.Cmder) bool {
	return strings.HasPrefix(cmd.Name(), "eval") || cmd.Name() == "hdel"
}

func (h redisSteps) passPhase() {
	switch phase(h.phase.Load()) {
	case rebuilding:
		h.steps.pass(inRebuild)
	case stopping:
		h.steps.pass(inStop)
	}
}

// schedules reports whether a command is a flush that begins with a schedule: an
// EVALSHA with its number of keys, the keys, the session, the number of the
// flush, and then "s".
func schedules(args []any) bool {
	if len(args) < 3 {
		return false
	}
	keys, ok := args[2].(int)
	if !ok || len(args) < 3+keys+3 {
		return false
	}
	return args[3+keys+2] == "s"
}
