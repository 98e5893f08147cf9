package main

import (
	"context"
	"encoding/csv"
	"fmt"
	"html"
	"io"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// statement is what one tenant is told of one month.
type statement struct {
	tenant, month string
	from, to      time.Time
}

// sheet is a way to write a statement, line by line: nothing is kept of it in memory.
type sheet interface {
	begin(s statement) error
	line(id int64, at time.Time, customer string, cents int64) error
	end(t total) error
}

const linesSQL = `
select id, at, customer, cents from report_demo.invoices where tenant = $1 and at >= $2 and at < $3 order by id`

// write streams a statement from the database to the sheet.
func (s statement) write(ctx context.Context, pool *pgxpool.Pool, to sheet) error {
	if err := to.begin(s); err != nil {
		return err
	}
	rows, err := pool.Query(ctx, linesSQL, s.tenant, s.from, s.to)
	if err != nil {
		return err
	}
	defer rows.Close()
	var t total
	for rows.Next() {
		var id, cents int64
		var at time.Time
		var customer string
		if err := rows.Scan(&id, &at, &customer, &cents); err != nil {
			return err
		}
		if err := to.line(id, at.UTC(), customer, cents); err != nil {
			return err
		}
		t.rows, t.cents = t.rows+1, t.cents+cents
	}
	if err := rows.Err(); err != nil {
		return err
	}
	return to.end(t)
}

// csvSheet has a line for the month at its begin and one for the total at its end.
type csvSheet struct{ w *csv.Writer }

func newCSV(w io.Writer) sheet { return csvSheet{csv.NewWriter(w)} }

func (c csvSheet) begin(s statement) error {
	return c.w.Write([]string{"statement", s.tenant, s.month, ""})
}

func (c csvSheet) line(id int64, at time.Time, customer string, cents int64) error {
	return c.w.Write([]string{strconv.FormatInt(id, 10), at.Format(time.RFC3339), customer, money(cents)})
}

func (c csvSheet) end(t total) error {
	if err := c.w.Write([]string{"total", strconv.FormatInt(t.rows, 10), "", money(t.cents)}); err != nil {
		return err
	}
	c.w.Flush()
	return c.w.Error()
}

// pageSheet is the statement as a page to print.
type pageSheet struct{ w io.Writer }

func newPage(w io.Writer) sheet { return pageSheet{w} }

func (p pageSheet) begin(s statement) error {
	_, err := fmt.Fprintf(p.w, `<!doctype html>
<html lang="en"><meta charset="utf-8"><title>%[1]s, %[2]s</title>
<style>body{font:14px sans-serif;margin:2em}table{border-collapse:collapse}td,th{padding:.2em 1em;text-align:left}td:last-child{text-align:right}thead{display:table-header-group}tr{break-inside:avoid}</style>
<h1>Statement of %[1]s</h1><p>%[2]s</p>
<table><thead><tr><th>Invoice<th>Date<th>Customer<th>Amount<tbody>
`, html.EscapeString(s.tenant), html.EscapeString(s.month))
	return err
}

func (p pageSheet) line(id int64, at time.Time, customer string, cents int64) error {
	_, err := fmt.Fprintf(p.w, "<tr><td>%d<td>%s<td>%s<td>%s\n", id, at.Format(time.DateOnly), html.EscapeString(customer), money(cents))
	return err
}

func (p pageSheet) end(t total) error {
	_, err := fmt.Fprintf(p.w, "<tfoot><tr><td>%d invoices<td><td>Total<td>%s\n</table>\n", t.rows, money(t.cents))
	return err
}

// money is exact: no floating point has seen it.
func money(cents int64) string {
	sign := ""
	if cents < 0 {
		sign, cents = "-", -cents
	}
	return fmt.Sprintf("%s%d.%02d", sign, cents/100, cents%100)
}
