package web

import (
	"net/http"
	"time"

	"pawl/jobs"
	"pawl/lockrepo"
)

// overview serves to machines what the first page shows to people.
type overview struct {
	cfg       Config
	snapshots *snapshots
}

// answer is what is true now, at most a hundred of each.
type answer struct {
	Now         time.Time          `json:"now"`
	Holders     []lockrepo.Info    `json:"holders"`
	StaleClaims []lockrepo.Tenure  `json:"stale_claims"`
	Refusals    []lockrepo.Refusal `json:"refusals"`
	LetThrough  []lockrepo.Refusal `json:"let_through"` // by tables that are protected in log mode
	Runs        []jobs.RunRecord   `json:"runs"`
	Counts      jobs.Counts        `json:"counts"`
}

// json answers all or nothing: a list that is empty because nobody answered would be a lie.
func (o *overview) json(w http.ResponseWriter, r *http.Request) {
	n := o.snapshots.get(r.Context())
	for _, err := range n.errs() {
		if err != nil {
			o.jsonAway(w, r, err)
			return
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	writeJSON(w, answer{
		Now: n.Now, Holders: n.Holders.Rows, StaleClaims: n.Stale.Rows, Refusals: n.Refusals.Rows, LetThrough: n.Passed.Rows,
		Runs: n.Runs.Rows, Counts: n.Counts.Rows[0],
	})
}

func (o *overview) jsonAway(w http.ResponseWriter, r *http.Request, err error) {
	problem(w, r, o.cfg.BasePath, unavailable, "The database "+lockrepo.Reason(err)+"; ask again.")
}
