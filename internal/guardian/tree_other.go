//go:build !linux

package guardian

import (
	"errors"
	"syscall"
)

// adoptOrphans is not known here: who leaves the group escapes.
func adoptOrphans() error { return nil }

// dieWithGuardian does nothing: the owner ends the group when it finds the guardian dead.
func dieWithGuardian(attr *syscall.SysProcAttr) *syscall.SysProcAttr { return attr }

func (tree) groupLeft(group int) bool { return !errors.Is(syscall.Kill(-group, 0), syscall.ESRCH) }

func (tree) signalBelow(int, syscall.Signal, func(proc) bool) {}

func (tree) killBelow(int) {}

func (proc) signal(syscall.Signal) {}

func killChildren(reap func() bool) bool { return reap() }

func below(int) []proc { return nil }

func (tree) killMarked() int { return 0 }
