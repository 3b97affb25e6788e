package dbserver

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// find is a binary on the PATH or in one of these folders.
func find(name string, folders ...string) (string, error) {
	if bin, err := exec.LookPath(name); err == nil {
		return bin, nil
	}
	for _, folder := range folders {
		if bin, err := exec.LookPath(filepath.Join(folder, name)); err == nil {
			return bin, nil
		}
	}
	return "", fmt.Errorf("%s: %w", name, ErrNotInstalled)
}

// environ is this process's environment without what servers would heed (PGPORT, MYSQL_HOME), and
// with their logs in English.
func environ() []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "PG") || strings.HasPrefix(v, "MYSQL") || strings.HasPrefix(v, "MARIADB")
	})
	return append(env, "LC_ALL=C")
}

// output runs a command to its end; what it said is in the error.
func output(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w:\n%s", cmd.Path, err, out)
	}
	return nil
}
