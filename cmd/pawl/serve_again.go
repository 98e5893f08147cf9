package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"pawl/jobs"
	"pawl/jobs/alert"
	"pawl/jobs/jobfile"
)

// wrong is what keeps the last version of the file, or a part of it, from being in use.
func (s *served) wrong() []string {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.issues)
}

// reload reads the file again. Each job and each channel is taken over by itself: one that is wrong stays as it was. What is wrong with the
// file as a whole leaves all as it was.
func (s *served) reload(ctx context.Context, r *jobs.Runner) {
	if s == nil {
		return
	}
	file, issues, err := readConfig(s.name, s.getenv)
	s.tell(ctx, issues)
	said := failures(issues)
	switch {
	case err != nil:
		s.keep(ctx, []string{sentence(err)})
		return
	case file == nil || slices.ContainsFunc(issues, func(i jobfile.Issue) bool { return i.Severity == jobfile.Error && i.Job == "" && i.Channel == "" }):
		s.keep(ctx, said)
		return
	case file.App != s.file.App:
		s.keep(ctx, append(said, s.name+": the app is "+file.App+" now, and was "+s.file.App+". Restart this process if that is meant."))
		return
	}
	all, wrong := s.build(ctx, file)
	c := jobs.Change{Set: all, AllowRetire: s.allow, Channels: append([]alert.Channel{}, file.Alerting()...)}
	for name, x := range file.Channels {
		if x.Broken {
			c.KeepChannels = append(c.KeepChannels, name)
		}
	}
	for _, j := range file.Jobs {
		if !slices.ContainsFunc(all, func(x jobs.Job) bool { return x.Name == j.Name }) {
			c.Keep = append(c.Keep, j.Name)
		}
	}
	wrong = append(wrong, flat(r.Reload(ctx, c))...)
	for _, err := range wrong {
		s.log.ErrorContext(ctx, "job file: a part can't be used, its old version stays", "file", s.name, "error", sentence(err))
		said = append(said, s.name+": "+sentence(err))
	}
	s.say(said)
	s.log.InfoContext(ctx, "job file reloaded", "file", s.name, "jobs", len(file.Jobs), "channels", len(file.Channels), "wrong", len(said))
}

// keep leaves all as it is, and says why.
func (s *served) keep(ctx context.Context, why []string) {
	s.say(why)
	s.log.ErrorContext(ctx, "the new job file can't be used, the old one stays", "file", s.name, "error", strings.Join(why, " "))
}

func (s *served) say(issues []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.issues = issues
}

// failures are the errors among the issues, one line each.
func failures(issues []jobfile.Issue) (lines []string) {
	for _, i := range issues {
		if i.Severity == jobfile.Error {
			lines = append(lines, i.String())
		}
	}
	return lines
}

// flat is the errors that were joined.
func flat(err error) []error {
	var joined interface{ Unwrap() []error }
	switch {
	case err == nil:
		return nil
	case errors.As(err, &joined):
		return joined.Unwrap()
	}
	return []error{err}
}
