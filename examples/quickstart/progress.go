package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/orderwheel/orderwheel/examples/internal/show"
)

// tally is how far a run is, in orders.
type tally struct{ total, created, paid, closed int64 }

func (t tally) String() string {
	return fmt.Sprintf("%s of %s orders created, %s paid, %s closed, %s open",
		show.Comma(t.created), show.Comma(t.total), show.Comma(t.paid), show.Comma(t.closed), show.Comma(t.created-t.paid-t.closed))
}

// progress shows how far a run is: as a bar where w is a terminal, else as a
// line a second.
type progress struct {
	w     io.Writer
	count func(context.Context) (tally, error)
	start time.Time
	width int // of the bar on the screen
}

// showProgress shows it until the returned function is called, which leaves an
// empty line of a terminal.
func showProgress(w io.Writer, count func(context.Context) (tally, error)) (end func()) {
	p := &progress{w: w, count: count, start: time.Now()}
	every, draw := time.Second, p.line
	if isTerminal(w) {
		every, draw = 100*time.Millisecond, p.bar
	}
	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		p.run(ctx, every, draw)
	}()
	return func() {
		stop()
		<-stopped
	}
}

func (p *progress) run(ctx context.Context, every time.Duration, draw func(tally)) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if t, err := p.count(ctx); err == nil { // else the run will say it
				draw(t)
			}
		case <-ctx.Done():
			if p.width > 0 {
				fmt.Fprintf(p.w, "\r%*s\r", p.width, "")
			}
			return
		}
	}
}

func (p *progress) line(t tally) {
	fmt.Fprintf(p.w, "%3.0fs: %v\n", time.Since(p.start).Seconds(), t)
}

const barCells = 20

func (p *progress) bar(t tally) {
	full := int(barCells * (t.paid + t.closed) / max(1, t.total))
	text := fmt.Sprintf("[%s%s] %v", strings.Repeat("#", full), strings.Repeat(".", barCells-full), t)
	fmt.Fprintf(p.w, "\r%-*s", p.width, text)
	p.width = max(p.width, len(text))
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
