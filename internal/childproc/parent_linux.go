// Package childproc is for programs and tests that start processes of their own.
package childproc

import "syscall"

// DieWithParent has the kernel kill a child when this process dies without its cleanups: a panic,
// a timeout, a kill. Other systems have nothing of the kind.
func DieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
