//go:build !linux

package main

import "syscall"

// dieWithParent has nothing to offer here.
func dieWithParent() *syscall.SysProcAttr { return nil }
