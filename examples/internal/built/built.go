// Package built gives tests the program of their own package, built as users
// build it: without the race detector.
package built

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// Run runs the tests of m and removes the program that they built. It gives the
// exit status for TestMain.
func Run(m *testing.M) int {
	status := m.Run()
	if dir != "" {
		_ = os.RemoveAll(dir)
	}
	return status
}

// Program builds the program in the folder of the running test, once, and gives
// its path. TestMain must end with os.Exit(built.Run(m)).
func Program(t testing.TB) string {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// dir is set by build, which has returned in every test before Run reads it.
var dir string

var build = sync.OnceValues(func() (path string, err error) {
	if dir, err = os.MkdirTemp("", "orderwheel-built-"); err != nil {
		return "", err
	}
	path = filepath.Join(dir, "program")
	if out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
})
