//go:build !linux

package childproc

import "syscall"

func DieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }
