package ui

import (
	"fmt"

	"pawl/jobs"
)

// strip is the row of figures, and the sentence that says what is wrong in them. A figure that is not known is a question
// mark.
func (p *overviewPage) strip() {
	var c jobs.Counts
	for _, row := range p.Counts.Rows {
		c = row
	}
	refused := sum(p.Writers.Rows)
	trouble := pick(p.Trouble > mostHolders, comma(mostHolders)+"+", comma(int64(p.Trouble)))
	known := func(away, figure string) string { return pick(away == "", figure, "?") }
	p.Strip = []figure{
		{known(p.Counts.Away, counted(c.Held)), plural(c.Held, "lock held", "locks held"), "/ui/locks?state=held", ""},
		{known(p.Holders.Away, counted(p.Late)), plural(p.Late, "late beat", "late beats"), "#holders", class(p.Late > 0, "warn")},
		{known(p.Counts.Away, counted(c.Stale)), plural(c.Stale, "expired lease nobody took", "expired leases nobody took"), "/ui/stale-claims?state=open", class(c.Stale > 0, "bad")},
		{known(p.Writers.Away, counted(refused)), plural(refused, "write refused, 1"+nb+"h", "writes refused, 1"+nb+"h"), "/ui/refusals?kind=refused&since=1h", class(refused > 0, "bad")},
		{known(p.Jobs.Away, trouble), plural(p.Trouble, "job in trouble", "jobs in trouble"), "/ui/jobs?state=trouble", class(p.Trouble > 0, "warn")},
		{known(p.Counts.Away, counted(c.Open)), plural(c.Open, "period waiting", "periods waiting"), "/ui/queue", ""},
	}
	if p.Counts.Away != "" {
		p.Status = "The database " + p.Counts.Away + "."
		return
	}
	p.Status = fmt.Sprintf("%s late, %s not taken over, %s writes refused, %s jobs in trouble.", counted(p.Late), counted(c.Stale), counted(refused), trouble)
}

func class(when bool, name string) string { return pick(when, name, "") }
