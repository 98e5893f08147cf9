package ui

import (
	"context"
	"time"

	"pawl/jobs"
)

// queuePage is what waits for a worker, and the workers.
type queuePage struct {
	Queue Panel[jobs.QueueState] // one
	Jobs  []queueRow
	now   time.Time
}

// queueRow is a job's part. Since when its first has been due is a time: an age would make each page another.
type queueRow struct {
	jobs.QueueJob
	Since time.Time
}

func (u *UI) queue(q *request) error {
	data := share(q.r.Context(), u.shared, "queue", u.readQueue)
	return u.render(q, view{Name: "queue", Title: "Queue", Nav: "queue", Now: data.now, Data: data})
}

func (u *UI) readQueue(ctx context.Context) queuePage {
	p := queuePage{now: time.Now()}
	p.Queue = panel(ctx, 1, func(ctx context.Context, _ int) ([]jobs.QueueState, error) {
		s, err := u.cfg.Jobs.Queue(ctx)
		return []jobs.QueueState{s}, err
	})
	if p.Queue.Away != "" {
		return p
	}
	for _, j := range p.Queue.Rows[0].ByJob {
		p.Jobs = append(p.Jobs, queueRow{j, p.now.Add(-j.Oldest).Round(time.Second)})
	}
	return p
}

// State is the one row of the queue.
func (p queuePage) State() jobs.QueueState { return p.Queue.Rows[0] }
