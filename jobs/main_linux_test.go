package jobs_test

import (
	"os/exec"
	"syscall"
)

// dieWithUs: a worker that a killed test leaves behind would go on for ever.
func dieWithUs(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
