package main

import (
	"context"
	"errors"
	"time"

	"github.com/hibiken/asynq"

	"github.com/orderwheel/orderwheel/bench/internal/scheme"
)

// asynqScheme is asynq as it comes: a task queue on Redis. A task for later waits in a ZSet until
// a forwarder moves it to a list, from which workers take it under a lease.
//
// Where it is used: in Go apps that need a task queue for other things too.
//
// What it risks: its times are whole seconds, so a task may run up to a second early: the
// close must compare expire_at, or the order is closed too soon. The forwarder looks every 5 s,
// unless told otherwise. What a dead process had taken comes back when its lease of 30 s is over
// and the recoverer, every minute, has found it; neither can be set.
type asynqScheme struct {
	env    *scheme.Env
	client *asynq.Client
	looks  *asynq.Inspector
	server *asynq.Server
}

const (
	taskType  = "order:close"
	taskQueue = "default"
)

func newAsynq(env *scheme.Env) scheme.Scheme { return &asynqScheme{env: env} }

func (s *asynqScheme) Start(context.Context) error {
	s.client = asynq.NewClientFromRedisClient(s.env.Redis)
	s.looks = asynq.NewInspectorFromRedisClient(s.env.Redis)
	s.server = asynq.NewServerFromRedisClient(s.env.Redis, asynq.Config{
		Concurrency:    s.env.Workers,
		LogLevel:       asynq.FatalLevel,
		RetryDelayFunc: func(int, error, *asynq.Task) time.Duration { return time.Second },
	})
	mux := asynq.NewServeMux()
	mux.HandleFunc(taskType, func(ctx context.Context, t *asynq.Task) error {
		return s.env.Handle(ctx, string(t.Payload()))
	})
	return s.server.Start(mux)
}

func (s *asynqScheme) Add(ctx context.Context, o scheme.Order) error {
	_, err := s.client.EnqueueContext(ctx, asynq.NewTask(taskType, []byte(o.ID)), asynq.TaskID(o.ID), asynq.ProcessAt(o.ExpireAt))
	return err
}

func (s *asynqScheme) Remove(_ context.Context, id string) error {
	err := s.looks.DeleteTask(taskQueue, id)
	if errors.Is(err, asynq.ErrTaskNotFound) {
		return nil
	}
	return err
}

func (s *asynqScheme) Stop() { s.server.Shutdown() }
