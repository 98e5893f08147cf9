package main

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"pawl/jobs"
)

func (c *cli) artifact() *cobra.Command {
	cmd := &cobra.Command{
		Use: "artifact", Short: "List, read and verify the files that jobs have published", Args: noCommand, RunE: help,
	}
	cmd.AddCommand(c.artifactList(), c.artifactGet(), c.artifactVerify())
	return cmd
}

// artifactsFlag names the store.
func artifactsFlag(fs *pflag.FlagSet, dir *string) {
	fs.StringVar(dir, "artifacts", "", "the directory that jobs publish to, the same for all workers and readers")
	variable(fs, "artifacts", "PAWL_ARTIFACTS")
}

// withArtifacts runs fn on what was published and on where its bytes are.
func (c *cli) withArtifacts(ctx context.Context, dir string, fn func(*jobs.Artifacts, *jobs.History) error) error {
	store, err := openStore(dir)
	if err != nil {
		return err
	}
	defer store.Close() //nolint:errcheck // it was only read
	return c.withHistory(ctx, func(db *database, h *jobs.History) error {
		a, err := jobs.NewArtifacts(jobs.ArtifactsConfig{Pool: db.pool, Store: store})
		if err != nil {
			return err
		}
		return fn(a, h)
	})
}

// openStore opens the directory for a command that reads: one that isn't there has nothing.
func openStore(dir string) (*jobs.ArtifactDir, error) {
	if dir == "" {
		return nil, usage("--artifacts is missing: name the directory that the jobs publish to, or set PAWL_ARTIFACTS")
	}
	store, err := jobs.OpenArtifactDir(dir)
	if err != nil {
		return nil, usage("--artifacts is %q: %s; name the directory that the jobs publish to", dir, last(err))
	}
	return store, nil
}

// versions are all of an artifact, the newest first.
func versions(ctx context.Context, h *jobs.History, name string) (all []jobs.Artifact, err error) {
	for before := int64(0); ; before = all[len(all)-1].Version {
		page, err := h.ArtifactVersions(ctx, name, before, mostListed)
		if all = append(all, page...); err != nil || len(page) < mostListed {
			return all, err
		}
	}
}

// currentOnes are all current versions, by name.
func currentOnes(ctx context.Context, h *jobs.History) (all []jobs.Artifact, err error) {
	for after := ""; ; after = all[len(all)-1].Name {
		page, err := h.Artifacts(ctx, jobs.ArtifactFilter{After: after, Limit: mostListed})
		if all = append(all, page...); err != nil || len(page) < mostListed {
			return all, err
		}
	}
}
