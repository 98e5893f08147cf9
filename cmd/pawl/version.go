package main

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"pawl/migrations"
)

// build is what this binary was made of.
type build struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Go      string `json:"go"`
	Schema  int    `json:"schema"` // the schema number that it is built for
}

func thisBuild() build {
	b := build{Version: "devel", Go: runtime.Version(), Schema: migrations.Binary}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		b.Version = v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			b.Commit = s.Value
		}
	}
	return b
}

func (c *cli) version() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Say which pawl this is", Args: exactly(),
		RunE: func(*cobra.Command, []string) error {
			b := thisBuild()
			if c.p.json {
				return c.p.value(b)
			}
			c.p.line("pawl %s (commit %s, %s, schema number %d)", b.Version, or(b.Commit), b.Go, b.Schema)
			return nil
		},
	}
}
