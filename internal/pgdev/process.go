package pgdev

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// Process is a child that doesn't outlive this process on Linux and that a ^C
// in the terminal doesn't reach.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error
}

// Spawn starts cmd as a Process. When this process ends, the child gets sig,
// on Linux.
func Spawn(cmd *exec.Cmd, sig syscall.Signal) (*Process, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	dieWithParent(cmd.SysProcAttr, sig)
	// A child of the child may keep the output open.
	cmd.WaitDelay = 2 * time.Second
	p := &Process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		// The kernel signals the child when the thread that made it ends, so
		// this thread must not end before (golang/go#27505).
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// Pid is the child's process id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Done is closed when the child has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err says how the child ended. It may be called once Done is closed.
func (p *Process) Err() error { return p.err }

// Stop sends the signals one after the other, a pause between them, until the
// child has ended.
func (p *Process) Stop(pause time.Duration, signals ...syscall.Signal) error {
	for _, sig := range signals {
		if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("signal %s: %w", sig, err)
		}
		timer := time.NewTimer(pause)
		select {
		case <-p.done:
			timer.Stop()
			return nil
		case <-timer.C:
		}
	}
	return errors.New("the process doesn't end")
}
