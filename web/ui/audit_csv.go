package ui

import (
	"context"
	"encoding/csv"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"pawl/lockrepo"
)

const perRead = 1000 // entries that one question of a file brings

// auditCSV is the list as a file, all of it, read and sent a part at a time.
func (u *UI) auditCSV(q *request) error {
	f, err := auditFilter(q.r.URL.Query(), zoneOf(q.r))
	if err != nil {
		return err
	}
	f.Limit = perRead
	entries, err := u.someAudit(q.r.Context(), f)
	if err != nil {
		return err
	}
	h := q.w.Header()
	h.Set("Content-Type", "text/csv; charset=utf-8; header=present")
	h.Set("Content-Disposition", `attachment; filename="pawl-audit.csv"`)
	out, conn := csv.NewWriter(q.w), http.NewResponseController(q.w)
	_ = out.Write([]string{"id", "at", "actor", "action", "lock", "token", "job", "period", "reason", "approver", "detail"})
	for {
		for _, e := range entries {
			_ = out.Write(csvRow(q.user, e))
		}
		out.Flush()
		if !readsOn(out) || len(entries) < perRead || q.r.Method == http.MethodHead {
			return nil
		}
		_ = conn.Flush()
		_ = conn.SetWriteDeadline(time.Now().Add(writeTimeout)) // not every server can
		f.Before = entries[len(entries)-1].ID
		if entries, err = u.someAudit(q.r.Context(), f); err != nil {
			u.cfg.Logger.WarnContext(q.r.Context(), "ui: the audit's file is cut", "error", err)
			panic(http.ErrAbortHandler) // else it would look whole
		}
	}
}

// readsOn tells that what was written so far has arrived; who has gone needs no more.
func readsOn(out *csv.Writer) bool { return out.Error() == nil }

const writeTimeout = 30 * time.Second // of one part of a file

func (u *UI) someAudit(ctx context.Context, f lockrepo.AuditFilter) ([]lockrepo.AuditEntry, error) {
	ctx, cancel := context.WithTimeout(ctx, panelTimeout)
	defer cancel()
	return u.cfg.Locks.Audit(ctx, f)
}

func csvRow(user User, e lockrepo.AuditEntry) []string {
	token := ""
	if e.Token != nil {
		token = strconv.FormatInt(*e.Token, 10)
	}
	row := []string{
		strconv.FormatInt(e.ID, 10), e.At.UTC().Format("2006-01-02T15:04:05.000000Z"), e.Actor, e.Action, e.Lock, token, e.Job, e.Period,
		e.Reason, e.Approver, string(public(user, e.Detail)),
	}
	for i := range row {
		row[i] = plain(row[i])
	}
	return row
}

// formula is where a spreadsheet may begin to calculate: at the beginning of a cell, and where a text has what ends a cell
// elsewhere, since half of the world's spreadsheets separate by semicolons and know no quotes then.
var formula = regexp.MustCompile(`((?:^|[;\t\r\n])[\s"']*)([=+\-@＝＋－＠])`)

// plain keeps a spreadsheet from taking a text for a formula.
func plain(cell string) string { return formula.ReplaceAllString(cell, "$1'$2") }
