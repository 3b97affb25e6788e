package redistest

import "syscall"

// dieWithParent has the kernel kill the server when the test binary dies
// without its cleanups: a panic, a timeout, a kill.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
