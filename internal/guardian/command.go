package guardian

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"
)

// Command is what runs under a guardian. Guardian, Args and Deadline are
// required.
type Command struct {
	Guardian []string      // the words after which this binary calls [Main] with what follows
	Args     []string      // the command and its arguments
	Env      []string      // default os.Environ
	Dir      string        // default the present one
	Stdin    *os.File      // these are handed down as they are; nil is /dev/null
	Stdout   *os.File      //
	Stderr   *os.File      // also for the guardian's own words
	Grace    time.Duration // between TERM and KILL, at least 0
	Deadline time.Duration // on [Clock]: no process of the tree is left then
	Sole     bool          // this process starts no other: what it adopts belongs to this command
}

// Start starts the guardian, which starts the command. Whether that worked is in
// the [Result].
func Start(c Command) (*Process, error) {
	switch {
	case len(c.Guardian) == 0 || len(c.Args) == 0:
		return nil, errors.New("guardian: Command.Guardian or Command.Args is empty: name this binary's words and the command")
	case c.Grace < 0:
		return nil, fmt.Errorf("guardian: Command.Grace is %v: give one of at least 0", c.Grace)
	}
	p := &Process{
		marker: rand.Text(), sole: c.Sole, deadline: c.Deadline,
		orders: make(chan order, 64), done: make(chan struct{}), dead: make(chan struct{}),
	}
	if c.Sole {
		if err := adoptOrphans(); err != nil {
			return nil, fmt.Errorf("guardian: become a child subreaper: %w", err)
		}
	}
	if err := p.start(c); err != nil {
		return nil, fmt.Errorf("guardian: start: %w", err)
	}
	return p, nil
}

func (p *Process) start(c Command) error {
	in, toGuard, errIn := os.Pipe()
	fromGuard, out, errOut := os.Pipe()
	if err := errors.Join(errIn, errOut); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	p.cmd = &exec.Cmd{
		Path: self, Args: slices.Concat(c.Guardian, []string{"--"}, c.Args), Env: c.Env, Stdin: file(c.Stdin),
		ExtraFiles: []*os.File{in, out}, SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if c.Stdout != nil {
		p.cmd.Stdout = c.Stdout
	}
	if c.Stderr != nil {
		p.cmd.Stderr = c.Stderr
	}
	err = p.cmd.Start()
	_, _ = in.Close(), out.Close() // the guardian has them
	if err == nil {
		err = json.NewEncoder(toGuard).Encode(spec{p.marker, c.Grace, c.Deadline, c.Dir})
	}
	if err != nil {
		_, _ = toGuard.Close(), fromGuard.Close()
		return err
	}
	// A guardian that is stopped doesn't look at the deadline.
	p.alarm, p.wake = time.AfterFunc(p.left(), func() { _ = p.cmd.Process.Kill() }), newWaker()
	p.wake.at(p.deadline)
	go speak(toGuard, p.orders, p.dead)
	go p.wait(fromGuard)
	return nil
}
