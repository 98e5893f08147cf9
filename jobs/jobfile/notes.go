package jobfile

import "time"

// Notes says what the changes of clocks in [from, to) do to jobs that run at fixed hours:
// which wall times are missing or come twice, and what runs then.
func (f *File) Notes(from, to time.Time) []Issue {
	var issues []Issue
	for _, job := range f.Jobs {
		if job.Broken || !job.Times.FixedHour() {
			continue
		}
		for _, n := range job.Times.Notes(from, to) {
			issues = append(issues, Issue{
				File: f.name, Line: job.at.line, Col: job.at.col,
				Job: job.Name, Text: job.Name + ": " + n.Text + ".", Severity: Note,
			})
		}
	}
	return issues
}
