// Command plot draws what bench/schemes has measured. It reads the report as JSON from its
// input and writes an SVG to the file that it is told:
//
//	go run ./bench/schemes -json > report.json
//	go run -C bench/peers ./plot /tmp/schemes.svg < report.json
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// report is the part of the report that is drawn.
type report struct {
	Scale, Orders, Rate int
	Rows                []struct {
		Name  string
		Plain *figures
	}
}

type figures struct {
	Orders                            int
	LateP50MS, LateP99MS, LateMaxMS   float64
	QueriesPerOrder, CommandsPerOrder float64
	CPUSeconds, ServersCPUSeconds     float64
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: plot FILE.svg < report.json")
		os.Exit(2)
	}
	if err := run(os.Stdin, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "plot:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, to string) error {
	var r report
	if err := json.NewDecoder(in).Decode(&r); err != nil {
		return fmt.Errorf("read the report: %w", err)
	}
	f, err := os.Create(to)
	if err != nil {
		return err
	}
	if err := drawReport(r, f); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}
