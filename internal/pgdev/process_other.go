//go:build !linux

package pgdev

import "syscall"

// dieWithParent does nothing: only the watchdog stands in here.
func dieWithParent(*syscall.SysProcAttr, syscall.Signal) {}
