package main

import (
	"cmp"
	"errors"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"pawl/jobs/jobfile"
)

// writtenFile is what init has written.
type writtenFile struct {
	File string `json:"file"`
}

func (c *cli) initFile() *cobra.Command {
	var config string
	cmd := &cobra.Command{
		Use: "init", Short: "Write a job file to start from", Args: exactly(),
		Long: `Write a job file to start from: commented, without a fault, with a job that runs as it is. A file that is
there is left alone.`,
		RunE: func(*cobra.Command, []string) error {
			name := cmp.Or(config, defaultConfig)
			if err := writeNew(name, jobfile.Init()); err != nil {
				return err
			}
			if c.p.json {
				return c.p.value(writtenFile{name})
			}
			c.p.line("wrote %s; see when it runs with: pawl plan --config %s --from %s --to %s", name, name, "2026-01-01", "2026-01-02")
			c.p.line("run it with: pawl serve --config %s", name)
			return nil
		},
	}
	configFlag(cmd.Flags(), &config)
	return cmd
}

// writeNew writes a file that isn't there yet.
func writeNew(name string, text []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // a job file is no secret: those are elsewhere
	var path *fs.PathError
	switch {
	case errors.Is(err, fs.ErrExist):
		return conflict("%s is there already: move it away, or name another file with --config FILE", name)
	case errors.As(err, &path):
		return usage("--config is %q: %s; name a file that can be written", name, path.Err)
	case err != nil:
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}
