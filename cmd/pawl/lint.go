package main

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"pawl/jobs/jobfile"
)

// foundIssue is one thing that is said about a job file.
type foundIssue struct {
	File     string `json:"file"`
	Line     int    `json:"line"` // 0: nowhere in particular
	Column   int    `json:"column"`
	Job      string `json:"job"`
	Text     string `json:"text"`
	Severity string `json:"severity"` // note, warning or error
}

func (c *cli) lint() *cobra.Command {
	var config string
	var strict, secrets bool
	cmd := &cobra.Command{
		Use: "lint [FILE]", Short: "Say all that is wrong with a job file", Args: atMost(1),
		Long: `Say all that is wrong with a job file, at once, and where: FILE:LINE:COLUMN. Notes tell what was inferred
from a schedule, and what next year's changes of clocks will do to it.

It needs no database and starts nothing. Secrets need not be there, unless --secrets is said.
Exit code 2: there is an error.`,
		Example: `  pawl lint
  pawl lint --strict jobs/pawl.yaml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && cmd.Flags().Changed("config") {
				return usage("the file is named twice, %q and --config %q: name it once", args[0], config)
			}
			if len(args) == 1 {
				config = args[0]
			}
			env := c.getenv
			if !secrets {
				env = nil
			}
			return c.lintFile(config, strict, env)
		},
	}
	configFlag(cmd.Flags(), &config)
	cmd.Flags().BoolVar(&strict, "strict", false, "secrets that are written into the file are errors")
	cmd.Flags().BoolVar(&secrets, "secrets", false, "look secrets up too, as serve does: ${env:X} and ${file:…}")
	return cmd
}

func (c *cli) lintFile(config string, strict bool, env func(string) string) error {
	file, issues, err := readConfig(config, env)
	if err != nil {
		return err
	}
	if file != nil {
		now := time.Now()
		issues = jobfile.Sort(append(issues, file.Notes(now, now.AddDate(1, 0, 0))...))
	}
	if err := c.printIssues(issues, strict); err != nil {
		return err
	}
	if jobfile.Failed(issues, strict) {
		return said(codeUsage)
	}
	if file != nil && !c.p.json {
		c.p.note("%s can run", plural(len(file.Jobs), "job", "jobs"))
	}
	return nil
}

// printIssues prints what was found: it is what was asked for, also where it is bad.
func (c *cli) printIssues(issues []jobfile.Issue, strict bool) error {
	if !c.p.json {
		if len(issues) > 0 {
			c.p.line("%s", cleanLines(trimLine(jobfile.Lines(issues))))
		}
		return nil
	}
	rows := []foundIssue{}
	for _, i := range issues {
		severity := i.Severity
		if strict && i.Strict {
			severity = jobfile.Error
		}
		rows = append(rows, foundIssue{i.File, i.Line, i.Col, i.Job, i.Text, severity.String()})
	}
	return c.p.value(rows)
}

// cleanLines is clean, line by line.
func cleanLines(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = clean(lines[i])
	}
	return strings.Join(lines, "\n")
}
