package dbserver

import (
	"context"
	"fmt"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// StartMariaDB starts a mariadbd and waits until it takes connections, from root with an empty
// password. args are appended to its command line and override the defaults:
//
//	dbserver.StartMariaDB(ctx, "--innodb-flush-log-at-trx-commit=1")
//
// ctx bounds the start alone.
func StartMariaDB(ctx context.Context, args ...string) (*Server, error) {
	bin, err := find("mariadbd", "/usr/sbin", "/usr/local/sbin", "/usr/libexec")
	if err != nil {
		return nil, err
	}
	setup, err := find("mariadb-install-db", "/usr/bin", "/usr/local/bin", "/usr/sbin")
	if err != nil {
		return nil, err
	}
	me, err := user.Current()
	if err != nil {
		return nil, err
	}
	// It need not be told who it is, unless it is root: then it wants to hear that this is meant.
	as := "--user=" + me.Username
	f := flavour{
		name:  "mariadb",
		bin:   bin,
		ready: "ready for connections",
		end:   syscall.SIGKILL, // it has no children, and its data goes with it
		commandLine: func(dir string, port int) []string {
			return []string{
				"--no-defaults", as, "--datadir=" + dir, tmpdir(dir), "--port=" + strconv.Itoa(port), "--bind-address=127.0.0.1",
				"--socket=mariadb.sock", "--pid-file=mariadb.pid", // in the data folder
				"--skip-name-resolve", "--max-connections=500",
				"--innodb-buffer-pool-size=64M", "--innodb-log-file-size=32M", "--key-buffer-size=1M", "--aria-pagecache-buffer-size=8M",
				"--innodb-flush-log-at-trx-commit=2", // to the operating system, not to the disk
			}
		},
		dsn: func(addr, database string) string { return fmt.Sprintf("root@tcp(%s)/%s", addr, database) },
	}
	return start(ctx, f, args, func(ctx context.Context, dir string) error {
		install := exec.CommandContext(ctx, setup, "--no-defaults", as, "--datadir="+dir, tmpdir(dir),
			"--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve", "--innodb-log-file-size=32M")
		install.Env = environ()
		return output(install)
	})
}

// tmpdir keeps a server's temporary tables in its data folder. In a shared folder, a server that
// starts removes those of all the others.
func tmpdir(dir string) string { return "--tmpdir=" + dir }
