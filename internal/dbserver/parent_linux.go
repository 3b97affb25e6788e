package dbserver

import "syscall"

// dieWithParent has the kernel kill the server when this process dies without Stop: a panic, a
// timeout, a kill.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
