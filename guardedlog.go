package orderwheel

import (
	"context"
	"log/slog"
)

// guardedLog swallows the panics of a log handler. It is the user's code, and is
// called from goroutines of the engine, where a panic would end the process. Attributes
// or a group that it cannot take are left out.
type guardedLog struct{ next slog.Handler }

func (g guardedLog) Enabled(ctx context.Context, level slog.Level) (enabled bool) {
	defer func() { _ = recover() }()
	return g.next.Enabled(ctx, level)
}

func (g guardedLog) Handle(ctx context.Context, r slog.Record) (err error) {
	defer func() { _ = recover() }()
	return g.next.Handle(ctx, r)
}

func (g guardedLog) WithAttrs(attrs []slog.Attr) (with slog.Handler) {
	defer g.orElse(&with)
	return guardedLog{g.next.WithAttrs(attrs)}
}

func (g guardedLog) WithGroup(name string) (with slog.Handler) {
	defer g.orElse(&with)
	return guardedLog{g.next.WithGroup(name)}
}

// orElse makes with g itself where the log handler has panicked.
func (g guardedLog) orElse(with *slog.Handler) {
	if recover() != nil {
		*with = g
	}
}
