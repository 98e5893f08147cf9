package web

import (
	"fmt"
	"strings"
	"time"

	"pawl/lockrepo"
)

// holderRow is one live lease.
type holderRow struct {
	Lock, Holder, Job, Period string
	Token                     int64
	AcquiredAt, RenewedAt     time.Time
	ExpiresAt                 time.Time
	TTL                       time.Duration
	Percent                   float64 // of the TTL that is left
	Late                      bool    // two beats are missing: a holder beats every third of its TTL
	Beats                     string
}

func viewHolder(now time.Time, l lockrepo.Info) holderRow {
	row := holderRow{
		Lock: l.Lock, Holder: l.Holder, Job: l.Job, Period: l.Period, Token: l.Token,
		AcquiredAt: known(l.AcquiredAt), RenewedAt: known(l.RenewedAt), ExpiresAt: known(l.ExpiresAt), TTL: l.TTL.Duration(),
		Beats: "no beat yet",
	}
	if l.Beats > 0 {
		row.Beats = fmt.Sprintf("%s %s, longest gap %s", comma(int64(l.Beats)), plural(l.Beats, "beat", "beats"), dur(l.LongestGap.Duration()))
	}
	left := row.ExpiresAt.Sub(now)
	row.Percent = percent(left.Seconds(), row.TTL.Seconds())
	row.Late = left < row.TTL/3
	return row
}

// staleRow is one stale claim.
type staleRow struct {
	Lock, Holder string
	Token        int64
	EndedAt      time.Time
	How          string
	Successor    int64 // 0: nobody has taken the lock since
	Taker        string
	TakenAt      time.Time
	Refusals     int64
}

func viewClaim(t lockrepo.Tenure) staleRow {
	row := staleRow{
		Lock: t.Lock, Holder: t.Holder, Token: t.Token, EndedAt: t.EndedAt, How: "expired",
		Taker: t.SuccessorHolder, TakenAt: known(t.SuccessorAt), Refusals: t.Refusals,
	}
	if t.How == "forced" {
		row.How = "released by force"
	}
	if t.Successor != nil {
		row.Successor = *t.Successor
	}
	return row
}

// refusalRow is one write that was turned away, or that log mode let pass.
type refusalRow struct {
	lockrepo.Refusal
	Token  int64 // 0: it came without any
	LateBy time.Duration
	Known  bool // how late it was
}

func viewRefusal(r lockrepo.Refusal) refusalRow {
	row := refusalRow{Refusal: r, Known: r.LateBy != nil}
	if row.Known {
		row.LateBy = r.LateBy.Duration()
	}
	if r.Token != nil {
		row.Token = *r.Token
	}
	row.Statement = strings.Join(strings.Fields(r.Statement), " ")
	return row
}

// known is the time, or none.
func known(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}
