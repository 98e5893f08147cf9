package jobs

import (
	"context"
	"errors"
	"time"
)

var (
	// ErrSkip is what a function returns, wrapped in the reason, when there is nothing to do: the period ends as
	// skipped (exit_code) and is not owed any more.
	ErrSkip = errors.New("jobs: period is skipped")
	// ErrNoRetry is what a function returns, wrapped in the reason, when another run would fail too: the period is
	// dead at once.
	ErrNoRetry = errors.New("jobs: no retry")
	// ErrUncertain is what a function returns, wrapped in the reason, when nobody can tell whether its effect has
	// happened: the period is dead at once, for a person to look. It counts also after the context has ended by the
	// timeout or a shutdown.
	ErrUncertain = errors.New("jobs: uncertain whether it happened")
)

// RetryError is a failure with the earliest moment of the next run.
type RetryError struct {
	After time.Duration // the period's own delay if that is longer; at most a day
	Err   error         // required
}

// Error implements error.
func (e *RetryError) Error() string { return e.Err.Error() }

// Unwrap returns the failure.
func (e *RetryError) Unwrap() error { return e.Err }

// mostRetryAfter bounds what a [RetryError] may ask for.
const mostRetryAfter = 24 * time.Hour

// retryAsked is how long an error asks to wait.
func retryAsked(err error) time.Duration {
	var retry *RetryError
	if errors.As(err, &retry) {
		return min(retry.After, mostRetryAfter)
	}
	return 0
}

// outcomeOf is what becomes of a run whose function has returned err.
func (r *Runner) outcomeOf(ctx context.Context, err error) string {
	cause := context.Cause(ctx)
	switch lost := ctx.Err() != nil && outcomeOfCause(cause) == stateLost; {
	case err == nil:
		return stateComplete
	case lost: // nothing that it says can be written
		return stateLost
	case errors.As(err, new(*noPermitError)): // it hasn't begun
		return stateDrained
	case errors.Is(err, ErrUncertain):
		return stateUncertain
	case errors.Is(err, ErrSkip):
		return stateSkipped
	case errors.Is(err, ErrNoRetry):
		return stateFinal
	case ctx.Err() != nil:
		return outcomeOfCause(cause)
	case errors.Is(err, ErrDrained) && r.draining.Load(): // it saw Run.Draining
		return stateDrained
	}
	return stateFailed // also after a refusal: if the lease is gone, the end is refused too
}

func outcomeOfCause(cause error) string {
	switch {
	case errors.Is(cause, ErrTimeout):
		return stateTimedOut
	case errors.Is(cause, ErrDrained):
		return stateDrained
	}
	return stateLost
}

// reason is why a period is in the state that an outcome has left it in, as pawl.finish writes it.
func reason(outcome string) string {
	switch outcome {
	case stateComplete:
		return ""
	case stateSkipped:
		return "exit_code"
	case stateFinal:
		return stateFailed
	}
	return outcome
}

// runState is the state of a run that has ended so: what ends a period for good is, for the run, a failure.
func runState(outcome string) string {
	if outcome == stateFinal || outcome == stateUncertain {
		return stateFailed
	}
	return outcome
}
