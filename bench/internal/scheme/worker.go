package scheme

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Job is what a process is to do. It gets it in the environment.
type Job struct {
	Scheme              string
	Run                 string // its name
	Every               time.Duration
	Scale               int
	Instance, Instances int
	Workers             int
	DSN, Redis, AMQP    string
	Calls               string // the file of its calls
	Plan                Plan
	AsWritten           bool // the handler is the articles' own
	// SlowEvery has the handler of each such order take SlowFor longer. 0: none.
	SlowEvery int
	SlowFor   time.Duration
}

// JobVariable is the environment variable with the job, as JSON.
const JobVariable = "ORDERWHEEL_SCHEME_JOB"

// What is told to a process, a line each, and what it tells.
const (
	TellPlace   = "place" // add the orders of the plan, and remove those that are paid
	TellStop    = "stop"
	TellStarted = "started"
	TellPlaced  = "placed"
)

// placers is how many orders are placed at once.
const placers = 32

// Work does the job of this process and returns the exit status. False: it has none.
func Work(schemes map[string]Factory) (status int, ok bool) {
	text := os.Getenv(JobVariable)
	if text == "" {
		return 0, false
	}
	var j Job
	err := json.Unmarshal([]byte(text), &j)
	if err == nil {
		err = Run(context.Background(), j, schemes[j.Scheme], os.Stdin, os.Stdout)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", j.Scheme, err)
		return 1, true
	}
	return 0, true
}

// Run does a job, until it is told to stop or in ends.
func Run(ctx context.Context, j Job, make Factory, in io.Reader, out io.Writer) error {
	if make == nil {
		return fmt.Errorf("unknown scheme %q", j.Scheme)
	}
	db, err := OpenDB(j.DSN)
	if err != nil {
		return err
	}
	defer db.Close()
	calls, err := openCallLog(j.Calls)
	if err != nil {
		return err
	}
	defer calls.file.Close()
	rdb := redis.NewClient(&redis.Options{Addr: j.Redis, ContextTimeoutEnabled: true, PoolSize: maxConns})
	defer rdb.Close()
	h := &handler{job: j, db: db, calls: calls}
	s := make(&Env{
		DB: db, Redis: rdb, AMQP: j.AMQP, Run: j.Run, Every: j.Every, Scale: j.Scale, Instance: j.Instance, Instances: j.Instances,
		Workers: j.Workers, Handle: h.handle,
		Alarm: func(what string, err error) { fmt.Fprintf(os.Stderr, "%s: %s: %v\n", j.Scheme, what, err) },
	})
	if err := s.Start(ctx); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	defer s.Stop()
	fmt.Fprintln(out, TellStarted)
	for lines := bufio.NewScanner(in); lines.Scan(); {
		switch strings.TrimSpace(lines.Text()) {
		case TellPlace:
			if err := place(ctx, s, j); err != nil {
				return fmt.Errorf("place orders: %w", err)
			}
			fmt.Fprintln(out, TellPlaced)
		case TellStop:
			return nil
		}
	}
	return nil
}

// place adds this instance's part of the plan, and removes what is paid.
func place(ctx context.Context, s Scheme, j Job) error {
	var next atomic.Int64
	var failed atomic.Pointer[error]
	var all sync.WaitGroup
	for range placers {
		all.Go(func() {
			for failed.Load() == nil {
				i := (int(next.Add(1))-1)*j.Instances + j.Instance
				if i >= j.Plan.Orders {
					return
				}
				o := j.Plan.Order(i)
				err := s.Add(ctx, o)
				if err == nil && j.Plan.Paid(i) {
					err = s.Remove(ctx, o.ID)
				}
				if err != nil {
					failed.CompareAndSwap(nil, &err)
				}
			}
		})
	}
	all.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}
