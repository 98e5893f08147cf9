package ui

import (
	"context"
	"net/url"
	"slices"
	"strconv"

	"pawl/jobs"
)

// shardsPart is the shards of a period, those that aren't done first: all are added up, and some are shown.
type shardsPart struct {
	jobs.ShardPage
	State  string // that is asked for; empty: all
	States []shardCount
	Next   string // the place after which the next page begins; empty: this is the last
	Away   string
}

// shardCount is how many shards are in a state.
type shardCount struct {
	State string
	Count int
}

// Any tells that there is something to show: most periods have no shards.
func (p shardsPart) Any() bool { return p.Away != "" || p.All > 0 }

// wantedShards are the state and the place that the query names.
func wantedShards(query url.Values) (state string, after int64, err error) {
	if state = query.Get("shards"); state != "" && !slices.Contains(shardStates(), state) {
		return "", 0, unknownState(state, shardStates())
	}
	after, err = number(query, "after")
	return state, after, err
}

// shardStates are those that a shard may have, the worst first.
func shardStates() []string {
	return []string{"dead", "cancelled", "running", "open", "skipped", "complete"}
}

func (u *UI) readShards(ctx context.Context, job, key, state string, after int64) shardsPart {
	ctx, cancel := context.WithTimeout(ctx, panelTimeout)
	defer cancel()
	all, err := u.cfg.Jobs.ShardPage(ctx, job, key, jobs.ShardFilter{State: state, After: after, Limit: perPage + 1})
	if err != nil {
		return shardsPart{Away: reason(err)}
	}
	p := shardsPart{ShardPage: all, State: state}
	for _, s := range shardStates() {
		if all.Counts[s] > 0 {
			p.States = append(p.States, shardCount{s, all.Counts[s]})
		}
	}
	if len(p.Rows) > perPage {
		p.Rows = p.Rows[:perPage]
		p.Next = strconv.FormatInt(p.Rows[perPage-1].Place(), 10)
	}
	return p
}
