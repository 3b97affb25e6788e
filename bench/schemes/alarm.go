package main

import (
	"context"

	"github.com/orderwheel/orderwheel/bench/internal/scheme"
)

// alarm reports an error, unless it is one of the end.
func alarm(ctx context.Context, env *scheme.Env, what string, err error) {
	if ctx.Err() == nil {
		env.Alarm(what, err)
	}
}
