package rabbit

import "syscall"

// dieWithParent has the kernel kill a child when this process dies without its cleanups.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
