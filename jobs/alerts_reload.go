package jobs

import (
	"context"
	"slices"
	"strings"

	"pawl/jobs/alert"
)

// ChannelError is an error of one channel.
type ChannelError struct {
	Channel string
	Err     error
}

// Error implements error.
func (e *ChannelError) Error() string { return `jobs: channel "` + e.Channel + `": ` + e.Err.Error() }

// Unwrap returns the error.
func (e *ChannelError) Unwrap() error { return e.Err }

// alerting is the channels that are told, as they are at one moment, by name.
func (r *Runner) alerting() []alert.Channel {
	r.changing.RLock()
	defer r.changing.RUnlock()
	return r.channels
}

// channel is that of a name; false: it is no channel any more.
func (r *Runner) channel(name string) (alert.Channel, bool) {
	all := r.alerting()
	i := slices.IndexFunc(all, func(c alert.Channel) bool { return c.Name == name })
	if i < 0 {
		return alert.Channel{}, false
	}
	return all[i], true
}

func channelNames(channels []alert.Channel) (names []string) {
	for _, c := range channels {
		names = append(names, c.Name)
	}
	return names
}

// reloadChannels takes each channel over by itself. What is under way is delivered to the channel as it is then.
func (r *Runner) reloadChannels(ctx context.Context, c Change) (errs []error) {
	if c.Channels == nil {
		return nil
	}
	var next []alert.Channel
	keep := func(name string) {
		old, there := r.channel(name)
		if there && !slices.Contains(channelNames(next), name) {
			next = append(next, old)
		}
	}
	for _, x := range c.Channels {
		if err := r.takeChannel(ctx, x, next); err != nil {
			errs = append(errs, &ChannelError{x.Name, err})
			keep(x.Name)
			continue
		}
		next = append(next, x)
	}
	for _, name := range c.KeepChannels {
		keep(name)
	}
	slices.SortFunc(next, func(a, b alert.Channel) int { return strings.Compare(a.Name, b.Name) })
	r.changing.Lock()
	defer r.changing.Unlock()
	r.channels = next
	return errs
}

// takeChannel checks a channel, and notes since when it is told.
func (r *Runner) takeChannel(ctx context.Context, x alert.Channel, others []alert.Channel) error {
	if slices.Contains(channelNames(others), x.Name) {
		return twice(x.Name)
	}
	if err := x.Check(); err != nil {
		return err
	}
	return r.openChannel(ctx, x)
}

func twice(name string) error {
	return &ConfigError{Field: "Channels", Value: name, Fix: "the name is used twice: give each channel one of its own"}
}
