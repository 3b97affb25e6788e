package persist

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// The errors of this package. Each error of a call wraps one class, the error of
// Redis or the network beneath it, and where ctx ended the call, ctx's error.
var (
	// ErrInvalid: an argument is wrong. Nothing was asked and nothing was written.
	ErrInvalid = errors.New("invalid")

	// ErrRetryable: Redis is away, or not ready (no connection, a timeout, loading, a
	// failover). The call was repeated until its ctx ended.
	ErrRetryable = errors.New("redis is away")

	// ErrDegraded: Redis answers, but refuses writes until somebody gives it room: OOM,
	// MISCONF, NOREPLICAS. The call was repeated until its ctx ended.
	ErrDegraded = errors.New("redis refuses writes")

	// ErrFatal: repeating cannot help: wrong credentials or permissions, a key of
	// another type, a command that this server does not know, a closed client.
	ErrFatal = errors.New("redis cannot do this")

	// ErrUnknownOutcome comes on top of a class: the write, or part of it, may
	// have happened, or may still happen. Schedule, Ack and the others may
	// be repeated; see the package documentation for what each then answers.
	ErrUnknownOutcome = errors.New("outcome unknown")

	// ErrNotReplicated: the write is stored, but not yet on as many replicas as WaitReplicas
	// asks for, or, with WaitFsync, on the disks. Its answers stand beside the error, all
	// of them (in a PartialError, all that are not Missing). It may be lost if the server
	// is, before they have it.
	ErrNotReplicated = errors.New("stored but not yet replicated")
)

// class says what to do about an error.
type class int

const (
	fatal     class = iota // give up
	retryable              // try again
	degraded               // try again, and alarm
)

func (c class) sentinel() error {
	switch c {
	case retryable:
		return ErrRetryable
	case degraded:
		return ErrDegraded
	}
	return ErrFatal
}

func (c class) String() string {
	switch c {
	case retryable:
		return "retryable"
	case degraded:
		return "degraded"
	}
	return "fatal"
}

// replyClasses classifies the error replies of Redis by their first word. What is
// not here is fatal.
var replyClasses = map[string]class{
	"LOADING":     retryable, // reading its data after a start
	"READONLY":    retryable, // demoted: a failover is under way
	"MASTERDOWN":  retryable,
	"CLUSTERDOWN": retryable,
	"TRYAGAIN":    retryable, // a slot is moving
	"BUSY":        retryable, // somebody's script runs long
	"UNBLOCKED":   retryable, // demoted while it waited

	"OOM":        degraded,
	"MISCONF":    degraded, // it cannot save
	"NOREPLICAS": degraded,

	"NOAUTH": fatal, "WRONGPASS": fatal, "NOPERM": fatal, "DENIED": fatal,
	"WRONGTYPE": fatal, "CROSSSLOT": fatal,
}

// inScript finds the reply code in the message of a server below 7.0, which puts
// the error of a script's call into a sentence:
// "ERR Error running script (call to f_...): @user_script:9: -OOM command not ...".
var inScript = regexp.MustCompile(`Error (?:running|compiling) script.*?[ :-](LOADING|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|OOM|MISCONF|NOREPLICAS|NOAUTH|NOPERM|WRONGTYPE|CROSSSLOT) `)

// classify is the one place that says what an error means. cluster: the client
// follows redirections, so that one which comes through is a slot on the move.
func classify(err error, cluster bool) class {
	var reply redis.Error
	if !errors.As(err, &reply) {
		if errors.Is(err, redis.ErrClosed) || errors.Is(err, errBadReply) {
			return fatal
		}
		return retryable // the network, a pool without a free connection
	}
	msg := reply.Error()
	code, _, _ := strings.Cut(msg, " ")
	switch {
	case isRedirection(err):
		if cluster {
			return retryable
		}
		return fatal
	case strings.HasPrefix(msg, "ERR max number of clients reached"):
		return retryable
	case code == "ERR":
		if m := inScript.FindStringSubmatch(msg); m != nil {
			code = m[1]
		}
	}
	return replyClasses[code]
}

// isRedirection reports whether the slot is elsewhere, or on its way.
func isRedirection(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply) && (strings.HasPrefix(reply.Error(), "MOVED ") || strings.HasPrefix(reply.Error(), "ASK "))
}

// isSilence reports whether a server could not be reached, or has not answered.
func isSilence(err error) bool {
	var reply redis.Error
	return err != nil && !errors.As(err, &reply) && !isLocal(err) && !errors.Is(err, redis.ErrClosed)
}

// mayHaveRun reports whether a call that ended in err may have been executed. An
// error reply says that it was not: our scripts read before they write, and
// whatever refuses a write refuses the first.
func mayHaveRun(err error) bool {
	var reply redis.Error
	var op *net.OpError
	switch {
	case err == nil, errors.As(err, &reply):
		return false
	case isLocal(err), errors.Is(err, redis.ErrClosed):
		return false // it had no connection
	case errors.As(err, &op) && op.Op == "dial":
		return false
	}
	return true
}

// isNoScript reports whether the server does not know a script's SHA. Some
// proxies put ERR in front of the code.
func isNoScript(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply) && strings.HasPrefix(strings.TrimPrefix(reply.Error(), "ERR "), "NOSCRIPT")
}

// isLocal reports whether err says nothing about Redis: this client's own pool
// has no connection to spare.
func isLocal(err error) bool {
	return errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrPoolExhausted)
}

// PartialError is the error of a call on several tasks of which only some were
// answered: their shard was away, or a chunk of MaxBatch of theirs failed. The answers
// stand at their places all the same; those at the places in Missing say
// nothing. With any other error there are no answers.
//
// It wraps the errors of what is missing: whether that may have happened, errors.Is with
// ErrUnknownOutcome tells.
type PartialError struct {
	Missing []int // places in the batch, ascending
	Err     error
}

func (e *PartialError) Error() string {
	return fmt.Sprintf("%d of the tasks have no answer: %v", len(e.Missing), e.Err)
}

func (e *PartialError) Unwrap() error { return e.Err }

// Missing returns the places in a batch of n that have no answer: none where err
// is nil or ErrNotReplicated, else all where it is no *PartialError.
func Missing(err error, n int) []int {
	if partial := (*PartialError)(nil); errors.As(err, &partial) {
		return partial.Missing
	}
	if err == nil || errors.Is(err, ErrNotReplicated) {
		return nil
	}
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// join is errors.Join, but leaves a single error as it is.
func join(errs []error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

// callError is the error of a call that did not get its answer.
type callError struct {
	op      string
	shard   string // empty where there is but one
	class   error  // a sentinel; nil: ctx had ended before anything was sent
	unknown bool   // it may have happened
	ctx     error  // what ended the call; nil: the last error did
	last    error  // the last error of Redis or the network; nil: it did not answer at all
	tries   int
	took    time.Duration
}

func (e *callError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "persist: %s: ", e.op)
	if e.shard != "" {
		fmt.Fprintf(&b, "%s: ", e.shard)
	}
	if e.unknown {
		fmt.Fprintf(&b, "%v: ", ErrUnknownOutcome)
	}
	if e.class != nil {
		fmt.Fprintf(&b, "%v: ", e.class)
	}
	if e.ctx != nil {
		fmt.Fprintf(&b, "%v after %d tries in %v", e.ctx, e.tries, e.took.Round(time.Millisecond))
	}
	switch {
	case e.last != nil && e.ctx != nil:
		fmt.Fprintf(&b, "; last error: %v", e.last)
	case e.last != nil:
		fmt.Fprintf(&b, "%v", e.last)
	}
	return b.String()
}

func (e *callError) Unwrap() []error {
	errs := make([]error, 0, 4)
	if e.unknown {
		errs = append(errs, ErrUnknownOutcome)
	}
	for _, err := range []error{e.class, e.ctx, e.last} {
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// errBadReply is the error of a reply of the wrong shape. It wraps to ErrFatal.
var errBadReply = errors.New("unexpected reply of a script")
