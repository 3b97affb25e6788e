// Command gotest runs go test with the arguments that it is given and prints
// what go test prints, and then fails also if a test was skipped. Without -v,
// go test says nothing of skipped tests, so a server that is missing would pass
// for a success.
//
// A test that is skipped for its length names `make test-long` as the place
// where it runs, and is excused. So is a part of the wheels' suite that an
// engine's documentation says it does not promise.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

var excuses = []string{"make test-long", "not promised by this engine"}

func main() {
	os.Exit(run(os.Args[1:]))
}

func run(args []string) int {
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = os.Stderr
	events, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gotest:", err)
		return 1
	}
	skips, printErr := show(events, os.Stdout)
	err = errors.Join(printErr, cmd.Wait())
	bad := 0
	for _, s := range skips {
		verdict := "excused"
		if !s.excused() {
			verdict = "NOT ALLOWED"
			bad++
		}
		fmt.Printf("skipped, %s: %s %s\n%s", verdict, s.pkg, s.test, s.output)
	}
	switch exit := (*exec.ExitError)(nil); {
	case errors.As(err, &exit):
		return exit.ExitCode()
	case err != nil:
		fmt.Fprintln(os.Stderr, "gotest:", err)
		return 1
	case bad > 0:
		fmt.Fprintf(os.Stderr, "gotest: %d tests were skipped: is a server missing, or a variable not set?\n", bad)
		return 1
	}
	return 0
}

// skip is one skipped test and what it printed.
type skip struct{ pkg, test, output string }

func (s skip) excused() bool {
	return slices.ContainsFunc(excuses, func(e string) bool { return strings.Contains(s.output, e) })
}

// event is one line of go test -json; `go doc test2json` describes them.
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
}

// show prints the events as go test without -v does: the lines of packages and
// the output of failed tests. It returns the skipped tests.
func show(events io.Reader, to io.Writer) ([]skip, error) {
	var skips []skip
	running := map[string]map[string]*strings.Builder{} // output by package and test
	after := map[string]*strings.Builder{}              // output by package that came after its test had ended
	out := bufio.NewWriter(to)
	lines := bufio.NewReader(events)
	for {
		line, readErr := lines.ReadBytes('\n')
		var e event
		if !bytes.HasPrefix(line, []byte("{")) || json.Unmarshal(line, &e) != nil {
			out.Write(line) // go test itself, not a test
		}
		tests := running[e.Package]
		switch {
		case e.Action == "build-output", e.Action == "output" && e.Test == "" && e.Output != "PASS\n":
			out.WriteString(e.Output)
		case e.Action == "run":
			if tests == nil {
				tests = map[string]*strings.Builder{}
				running[e.Package] = tests
			}
			tests[e.Test] = &strings.Builder{}
		case e.Action == "output" && tests[e.Test] != nil:
			if !strings.HasPrefix(e.Output, "=== ") {
				tests[e.Test].WriteString(e.Output)
			}
		case e.Action == "output" && e.Test != "" && !strings.HasPrefix(e.Output, "=== "):
			if after[e.Package] == nil {
				after[e.Package] = &strings.Builder{}
			}
			after[e.Package].WriteString(e.Output)
		case e.Test != "" && tests[e.Test] != nil && (e.Action == "pass" || e.Action == "fail" || e.Action == "skip"):
			switch printed := tests[e.Test].String(); e.Action {
			case "fail":
				out.WriteString(printed)
			case "skip":
				skips = append(skips, skip{e.Package, e.Test, printed})
			}
			delete(tests, e.Test)
		case e.Action == "fail" && e.Test == "": // the package ended: what still ran is part of the story
			for _, printed := range tests {
				out.WriteString(printed.String())
			}
			if late := after[e.Package]; late != nil {
				out.WriteString(late.String())
			}
			delete(running, e.Package)
		}
		if len(line) > 0 {
			if err := out.Flush(); err != nil {
				return skips, err
			}
		}
		if readErr == io.EOF {
			return skips, nil
		}
		if readErr != nil {
			return skips, readErr
		}
	}
}
