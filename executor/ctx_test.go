package executor

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func newHandlerCtx(parent context.Context) *handlerCtx {
	return &handlerCtx{parent: parent, deadline: time.Now().Add(time.Minute)}
}

func TestAHandlersCtxEndsAtItsDeadlineWhetherSomebodyLookedOrNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looked, unseen := newHandlerCtx(t.Context()), newHandlerCtx(t.Context())
		require.NoError(t, looked.Err())
		child, cancel := context.WithCancel(looked)
		defer cancel()
		time.Sleep(time.Minute)
		<-child.Done()
		for _, c := range []*handlerCtx{looked, unseen} {
			require.True(t, c.ended(time.Now()))
			require.ErrorIs(t, c.Err(), context.DeadlineExceeded)
			require.ErrorIs(t, context.Cause(c), context.DeadlineExceeded)
			c.end(nil)
			require.ErrorIs(t, c.Err(), context.DeadlineExceeded, "and stays as it ended")
		}
		require.ErrorIs(t, child.Err(), context.DeadlineExceeded)
	})
}

func TestAHandlersCtxTellsItsCauseWhetherSomebodyLookedOrNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looked, unseen := newHandlerCtx(t.Context()), newHandlerCtx(t.Context())
		child, cancel := context.WithTimeout(looked, time.Hour)
		defer cancel()
		for _, c := range []*handlerCtx{looked, unseen} {
			require.False(t, c.ended(time.Now()))
			c.end(ErrLeaseLost)
			require.True(t, c.ended(time.Now()))
		}
		time.Sleep(2 * time.Minute) // the deadline comes second
		for _, c := range []*handlerCtx{looked, unseen} {
			require.ErrorIs(t, c.Err(), context.Canceled)
			require.ErrorIs(t, context.Cause(c), ErrLeaseLost)
		}
		require.ErrorIs(t, context.Cause(child), ErrLeaseLost)
	})
}

func TestAHandlersCtxHasEndedWhenTheHandlerHasReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looked, unseen := newHandlerCtx(t.Context()), newHandlerCtx(t.Context())
		require.NoError(t, looked.Err())
		for _, c := range []*handlerCtx{looked, unseen} {
			c.end(nil)
			require.True(t, c.ended(time.Now()))
		}
		time.Sleep(2 * time.Minute)
		for _, c := range []*handlerCtx{looked, unseen} {
			<-c.Done()
			require.ErrorIs(t, c.Err(), context.Canceled)
		}
	})
}

func TestAHandlersCtxEndsWithItsParent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parent, cancel := context.WithCancel(t.Context())
		looked, unseen := newHandlerCtx(parent), newHandlerCtx(parent)
		done := looked.Done()
		cancel()
		<-done
		require.True(t, unseen.ended(time.Now()))
		require.ErrorIs(t, unseen.Err(), context.Canceled)
		looked.end(nil)
		unseen.end(nil)
	})
}
