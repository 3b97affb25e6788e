package main

import "syscall"

// dieWithParent has the kernel kill a child when this program dies without its cleanups.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
