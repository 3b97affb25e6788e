// Package medians reads what go test -bench prints, for the programs that make
// tables of it.
package medians

import (
	"bufio"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Read copies in to out, and passes on each figure: the name of the benchmark
// without "Benchmark" and the number of processors, the unit, and the value. It
// returns an error unless the benchmarks say that they passed.
func Read(in io.Reader, out io.Writer, put func(name, unit string, value float64)) error {
	passed := false
	for lines := bufio.NewScanner(io.TeeReader(in, out)); ; {
		if !lines.Scan() {
			if err := lines.Err(); err != nil {
				return err
			}
			break
		}
		line := lines.Text()
		switch {
		case strings.HasPrefix(line, "FAIL"), strings.HasPrefix(line, "--- FAIL"):
			return errors.New("a benchmark failed")
		case strings.HasPrefix(line, "ok"):
			passed = true
		default:
			figures(line, put)
		}
	}
	if !passed {
		return errors.New("no benchmark passed")
	}
	return nil
}

// figures passes on what one line says. What is no benchmark's result is ignored.
func figures(line string, put func(name, unit string, value float64)) {
	fields := strings.Fields(line)
	if len(fields) < 4 {
		return
	}
	name, ok := strings.CutPrefix(fields[0], "Benchmark")
	if !ok {
		return
	}
	if i := strings.LastIndex(name, "-"); i >= 0 { // -GOMAXPROCS
		name = name[:i]
	}
	for i := 2; i+1 < len(fields); i += 2 {
		v, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			return
		}
		put(name, fields[i+1], v)
	}
}

// Of is the median of values, of which there is at least one.
func Of(values []float64) float64 {
	v := slices.Sorted(slices.Values(values))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}
