package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"pawl/jobs"
)

func (c *cli) artifactGet() *cobra.Command {
	var dir, output string
	var version int64
	cmd := &cobra.Command{
		Use: "get NAME", Short: "Read the current version of an artifact", Args: exactly("NAME"),
		Long: `Read the current version of an artifact, or that of --version, to standard output or to the file of --output.

Its bytes are compared with what was published: exit code 3 if they are others, and then a file of --output is
as it was before, and standard output doesn't have all of them.`,
		Example: `  pawl artifact get statements/acme.csv --output acme.csv`,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case c.p.json && output == "":
				return usage("--json without --output: say where the bytes go")
			case version < 0:
				return usage("--version is %d: use 1 or more", version)
			}
			if err := jobs.CheckArtifactName(args[0]); err != nil {
				return err
			}
			return c.withArtifacts(cmd.Context(), dir, func(a *jobs.Artifacts, h *jobs.History) error {
				r, err := openVersion(cmd.Context(), a, h, args[0], version)
				if err != nil {
					return err
				}
				defer r.Close() //nolint:errcheck // it was only read
				return c.saveArtifact(r, output)
			})
		},
	}
	artifactsFlag(cmd.Flags(), &dir)
	cmd.Flags().StringVarP(&output, "output", "o", "", "the file to write; default standard output")
	cmd.Flags().Int64Var(&version, "version", 0, "an older version, as long as it is kept; default the current one")
	return cmd
}

func openVersion(ctx context.Context, a *jobs.Artifacts, h *jobs.History, name string, version int64) (*jobs.ArtifactReader, error) {
	if version == 0 {
		return a.Open(ctx, name)
	}
	all, err := h.ArtifactVersions(ctx, name, version+1, 1)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 || all[0].Version != version {
		return nil, usage("there is no version %d of %s; list them with: pawl artifact ls %s", version, name, name)
	}
	return a.OpenVersion(ctx, all[0])
}

func (c *cli) saveArtifact(r *jobs.ArtifactReader, output string) error {
	if output == "" {
		_, err := io.Copy(c.p.out, r)
		return err
	}
	if err := replaceFile(output, r); err != nil {
		return err
	}
	if c.p.json {
		return c.p.value(r.Artifact)
	}
	c.p.line("%s: version %d of %s, %s bytes, token %s", clean(output), r.Version, r.Name, thousands(r.Size), token(r.Token))
	return nil
}

// replaceFile writes a file as a whole, or leaves it as it was.
func replaceFile(name string, from io.Reader) (err error) {
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-*")
	if err != nil {
		return usage("--output is %q: %s", name, last(err))
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	_, err = io.Copy(f, from)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write %q: %w", name, err)
	}
	return os.Rename(f.Name(), name)
}
