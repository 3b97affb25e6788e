package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/orderwheel/orderwheel/bench/internal/medians"
)

// figure is one thing that must not grow.
type figure struct {
	name  string
	unit  float64 // of what is printed
	slack float64 // how much the last third may have more than the first, beside a tenth
}

const mib = 1 << 20

var watched = []figure{
	{"heap, MiB", mib, mib / 2},
	{"goroutines", 1, 8},
	{"connections", 1, 2},
	{"Redis, MiB", mib, mib},
	{"tasks to run", 1, 200},
}

// figures are what one look has seen, in the order of watched.
type figures [5]float64

// samples are what was seen, about once a second.
type samples struct {
	d        time.Duration
	warmUp   time.Duration
	progress io.Writer
	values   []figures // after the warm-up
}

func newSamples(d time.Duration, progress io.Writer) *samples {
	return &samples{d: d, warmUp: min(d/4, time.Minute), progress: progress}
}

// watch looks until ctx ends, and tells about the progress now and then.
func (s *samples) watch(ctx context.Context, look func(context.Context) (figures, error)) error {
	ticker := time.NewTicker(min(time.Second, s.d/40))
	defer ticker.Stop()
	start, told := time.Now(), time.Now()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
		f, err := look(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		if time.Since(start) >= s.warmUp {
			s.values = append(s.values, f)
		}
		if time.Since(told) >= min(s.d/10, time.Minute) {
			told = time.Now()
			fmt.Fprintf(s.progress, "soak: %v of %v: %s\n", time.Since(start).Round(time.Second), s.d, f)
		}
	}
}

func (f figures) String() string {
	text := ""
	for i, w := range watched {
		text += fmt.Sprintf("%s %.4g; ", w.name, f[i]/w.unit)
	}
	return text[:len(text)-2]
}

// judge prints the medians of the first and of the last third, and returns what grew.
func (s *samples) judge(out io.Writer) (faults []error) {
	third := len(s.values) / 3
	if third == 0 {
		return []error{fmt.Errorf("only %d looks after the warm-up", len(s.values))}
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	defer w.Flush()
	fmt.Fprintf(w, "medians of %d looks each\tfirst third\tlast third\tmost allowed\t\n", third)
	for i, f := range watched {
		first, last := median(s.values[:third], i), median(s.values[len(s.values)-third:], i)
		most := first*1.1 + f.slack
		fmt.Fprintf(w, "%s\t%.4g\t%.4g\t%.4g\t\n", f.name, first/f.unit, last/f.unit, most/f.unit)
		if last > most {
			faults = append(faults, fmt.Errorf("%s grew from %.4g to %.4g", f.name, first/f.unit, last/f.unit))
		}
	}
	return faults
}

func median(values []figures, i int) float64 {
	column := slices.Collect(func(yield func(float64) bool) {
		for _, v := range values {
			if !yield(v[i]) {
				return
			}
		}
	})
	return medians.Of(column)
}
