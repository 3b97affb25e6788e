package dbserver

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

const postgresUser = "orderwheel"

// StartPostgres starts a PostgreSQL and waits until it takes connections, from the user orderwheel
// without a password. args are appended to its command line and override the defaults:
//
//	dbserver.StartPostgres(ctx, "-c", "fsync=on")
//
// ctx bounds the start alone.
func StartPostgres(ctx context.Context, args ...string) (*Server, error) {
	// Debian keeps the binaries of each version in a folder of its own, and off the PATH.
	folders, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil {
		return nil, err
	}
	slices.SortFunc(folders, func(a, b string) int { return version(b) - version(a) }) // the newest first
	bin, err := find("postgres", append(folders, "/usr/bin", "/usr/local/bin")...)
	if err != nil {
		return nil, err
	}
	as, err := notRoot()
	if err != nil {
		return nil, err
	}
	f := flavour{
		name:  "postgres",
		bin:   bin,
		user:  as,
		ready: "database system is ready to accept", // connections, or of a standby read-only ones
		end:   syscall.SIGQUIT,                      // at once, without a checkpoint; unlike SIGKILL it ends the children too
		commandLine: func(dir string, port int) []string {
			return []string{
				"-D", dir, "-p", strconv.Itoa(port), "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=",
				"-c", "max_connections=500", "-c", "shared_buffers=64MB", "-c", "dynamic_shared_memory_type=mmap",
				"-c", "fsync=off", "-c", "full_page_writes=off", // to the operating system, not to the disk
			}
		},
		dsn: func(addr, database string) string {
			return fmt.Sprintf("postgres://%s@%s/%s?sslmode=disable", postgresUser, addr, database)
		},
	}
	return start(ctx, f, args, func(ctx context.Context, dir string) error {
		initdb := exec.CommandContext(ctx, filepath.Join(filepath.Dir(bin), "initdb"), "-D", dir,
			"--auth=trust", "--username="+postgresUser, "--encoding=UTF8", "--no-locale", "--no-sync", "--no-instructions")
		initdb.Env = environ()
		initdb.SysProcAttr = &syscall.SysProcAttr{Credential: as}
		initdb.Dir = dir
		return output(initdb)
	})
}

// version is that of a folder of Debian's.
func version(folder string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(folder)))
	return n
}

// notRoot is whom a server runs as that refuses root; nil where this process is not root.
func notRoot() (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		u, err = user.Lookup("nobody")
	}
	if err != nil {
		return nil, fmt.Errorf("PostgreSQL refuses to run as root: %w", err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}
