package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

// The grades of a finding.
const (
	fine = "ok"
	warn = "warn"
	bad  = "fail"
)

// finding is one line of the doctor's.
type finding struct {
	Check  string `json:"check"`
	Status string `json:"status"` // ok, warn or fail
	Detail string `json:"detail"`
	Fix    string `json:"fix"` // empty unless there is something to mend
}

func (c *cli) doctor() *cobra.Command {
	return &cobra.Command{
		Use: "doctor", Short: "Look at the surroundings: server, rights, clocks, leases, indexes, pools", Args: exactly(),
		Long: `Look at the surroundings: what the server is, what this account may do, how far the clocks are apart, how
long leases go without a renewal and which TTL that suggests, what in the database would hold pawl up.

It changes nothing. Exit code 1: at least one line says fail.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			db, err := c.open(cmd.Context(), 2)
			if err != nil {
				return err
			}
			defer db.pool.Close()
			return c.report(examine(cmd.Context(), db))
		},
	}
}

// check is one of the doctor's questions.
type check struct {
	name   string
	schema bool // it reads pawl's tables
	ask    func(context.Context, *database) (finding, error)
}

// checks are in the order of the report.
func checks() []check {
	return []check{
		{"server", false, checkServer},
		{"pooler", false, checkPooler},
		{"rights", false, checkRights},
		{"schema", false, checkSchema},
		{"home", true, checkHome},
		{"clock", false, checkClock},
		{"round trip", false, checkRoundTrip},
		{"leases", true, checkLeases},
		{"renewals", true, checkRenewals},
		{"indexes", false, checkIndexes},
		{"locks table", true, checkLocksTable},
		{"protected partitions", true, checkPartitions},
		{"connections", false, checkConnections},
		{"prepared transactions", false, checkPrepared},
		{"long transactions", false, checkLongTransactions},
		{"multixacts", false, checkMultixacts},
		{"synchronous commit", false, checkSynchronous},
		{"commit timestamps", false, checkTimestamps},
	}
}

// examine asks everything. A question that the server doesn't answer is a warning, not the end.
func examine(ctx context.Context, db *database) (all []finding) {
	readable := true
	for _, k := range checks() {
		if k.schema && !readable {
			continue
		}
		f, err := k.ask(ctx, db)
		if err != nil {
			f = finding{Status: warn, Detail: "not known: " + sentence(err), Fix: "use an account that may read it, such as a member of pg_monitor"}
		}
		f.Check = k.name
		if k.name == "schema" || k.name == "rights" {
			readable = readable && f.Status == fine
		}
		all = append(all, f)
	}
	return all
}

// report prints the findings.
func (c *cli) report(all []finding) error {
	failed := 0
	for _, f := range all {
		if f.Status == bad {
			failed++
		}
	}
	if c.p.json {
		if err := c.p.value(all); err != nil {
			return err
		}
	} else {
		c.printFindings(all)
	}
	if failed > 0 {
		c.p.note("%s", plural(failed, "check fails", "checks fail"))
		return said(codeFailed)
	}
	return nil
}

func (c *cli) printFindings(all []finding) {
	colours := map[string]string{fine: green, warn: yellow, bad: red}
	for _, f := range all {
		status := c.p.coloured(colours[f.Status], fmt.Sprintf("%-4s", f.Status))
		c.p.line("%s  %-21s  %s", status, f.Check, clean(f.Detail))
		if f.Fix != "" {
			c.p.line("%4s  %-21s  → %s", "", "", clean(f.Fix))
		}
	}
}

func okay(format string, args ...any) (finding, error) {
	return finding{Status: fine, Detail: fmt.Sprintf(format, args...)}, nil
}

// unless is fine, or of the given status with the way to mend it.
func unless(wrong bool, status, detail, fix string) (finding, error) {
	if wrong {
		return finding{Status: status, Detail: detail, Fix: fix}, nil
	}
	return finding{Status: fine, Detail: detail}, nil
}
