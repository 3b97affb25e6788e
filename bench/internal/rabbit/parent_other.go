//go:build !linux

package rabbit

import "syscall"

// dieWithParent has nothing to offer here.
func dieWithParent() *syscall.SysProcAttr { return nil }
