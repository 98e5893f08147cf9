package jobfile

import (
	"fmt"
	"slices"
)

// CheckRetired says whether the file leaves out too many of the jobs that its app has.
// known are the app's jobs that are not retired yet. It is an error
// when more than 30 % of them and at least 3 would be retired, unless allow is that many.
func (f *File) CheckRetired(known []string, allow int) []Issue {
	absent := 0
	for _, name := range known {
		if !slices.ContainsFunc(f.Jobs, func(j Job) bool { return j.Name == name || j.RenameFrom == name }) {
			absent++
		}
	}
	if absent < 3 || 10*absent <= 3*len(known) || absent <= allow {
		return nil
	}
	return []Issue{{File: f.name, Severity: Error, Text: fmt.Sprintf(
		"%d of %d known jobs of app %q are absent and would be retired. Pass --allow-retire %d if intended.",
		absent, len(known), f.App, absent)}}
}
