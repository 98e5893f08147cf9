package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"pawl/jobs"
)

func (c *cli) artifactList() *cobra.Command {
	var f jobs.ArtifactFilter
	cmd := &cobra.Command{
		Use: "ls [NAME]", Short: "List the current versions, or all versions of one artifact", Args: atMost(1),
		Example: `  pawl artifact ls --prefix statements/
  pawl artifact ls statements/acme.csv`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withHistory(cmd.Context(), func(_ *database, h *jobs.History) error {
				if len(args) == 0 {
					all, err := h.Artifacts(cmd.Context(), f)
					if err == nil && len(all) == 0 {
						err = known(cmd.Context(), h, f.Job, "")
					}
					if err != nil {
						return err
					}
					return c.listArtifacts(all)
				}
				if err := jobs.CheckArtifactName(args[0]); err != nil {
					return err
				}
				all, err := h.ArtifactVersions(cmd.Context(), args[0], 0, f.Limit)
				if err != nil {
					return err
				}
				if len(all) == 0 {
					return fmt.Errorf("%w: %q", jobs.ErrNoArtifact, args[0])
				}
				return c.listArtifacts(all)
			})
		},
	}
	cmd.Flags().StringVar(&f.Prefix, "prefix", "", "only names that begin so")
	cmd.Flags().StringVar(&f.Job, "job", "", "only what this job has published")
	cmd.Flags().StringVar(&f.After, "after", "", "only names after this one: the last of the page before")
	limitFlag(cmd, &f.Limit)
	return cmd
}

func (c *cli) listArtifacts(all []jobs.Artifact) error {
	heads := []string{"ARTIFACT", "VERSION", "STATE", "BYTES", "TOKEN", "JOB", "PERIOD", "PUBLISHED", "SHA-256"}
	return list(c.p, all, "no artifacts", heads, func(a jobs.Artifact) []string {
		return []string{a.Name, thousands(a.Version), stateOfArtifact(a), thousands(a.Size), token(a.Token), a.Job, a.Key, at(&a.At), a.Hash[:min(len(a.Hash), 12)]}
	})
}

func stateOfArtifact(a jobs.Artifact) string {
	switch {
	case a.SupersededAt == nil:
		return "current"
	case a.RemovedAt == nil:
		return "superseded"
	}
	return "removed"
}
