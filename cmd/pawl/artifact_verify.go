package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"pawl/jobs"
)

// verified is what was found of one version.
type verified struct {
	Name    string `json:"name"`
	Version int64  `json:"version"`
	File    string `json:"file"`
	State   string `json:"state"` // ok, changed, gone
}

func (c *cli) artifactVerify() *cobra.Command {
	var dir string
	var every bool
	cmd := &cobra.Command{
		Use: "verify [NAME]", Short: "Compare the files in the store with what was published", Args: atMost(1),
		Long: `Read the files in the store and compare them with what was published: the current versions, or that of one
artifact; with --versions those that were superseded and are still kept, too.

Exit code 1: some are gone, or have other bytes.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withArtifacts(cmd.Context(), dir, func(a *jobs.Artifacts, h *jobs.History) error {
				all, err := toVerify(cmd.Context(), a, h, args, every)
				if err != nil {
					return err
				}
				return c.verify(cmd.Context(), a, all)
			})
		},
	}
	artifactsFlag(cmd.Flags(), &dir)
	cmd.Flags().BoolVar(&every, "versions", false, "superseded versions too")
	return cmd
}

func toVerify(ctx context.Context, a *jobs.Artifacts, h *jobs.History, args []string, every bool) (all []jobs.Artifact, err error) {
	if len(args) > 0 {
		current, err := a.Current(ctx, args[0])
		if err != nil {
			return nil, err
		}
		all = []jobs.Artifact{current}
	} else if all, err = currentOnes(ctx, h); err != nil {
		return nil, err
	}
	if !every {
		return all, nil
	}
	var more []jobs.Artifact
	for _, one := range all {
		kept, err := versions(ctx, h, one.Name)
		if err != nil {
			return nil, err
		}
		for _, v := range kept {
			if v.RemovedAt == nil {
				more = append(more, v)
			}
		}
	}
	return more, nil
}

func (c *cli) verify(ctx context.Context, a *jobs.Artifacts, all []jobs.Artifact) error {
	bad, found := 0, make([]verified, 0, len(all))
	for _, v := range all {
		row := verified{v.Name, v.Version, v.File, "ok"}
		err := a.Verify(ctx, v)
		switch {
		case err == nil:
		case errors.Is(err, jobs.ErrArtifactChanged):
			row.State = "changed"
		case errors.Is(err, jobs.ErrArtifactGone):
			row.State = "gone"
		default:
			return err
		}
		if row.State != "ok" {
			bad++
		}
		found = append(found, row)
	}
	err := list(c.p, found, "no artifacts", []string{"ARTIFACT", "VERSION", "FILE", "STATE"}, func(v verified) []string {
		return []string{v.Name, thousands(v.Version), v.File, v.State}
	})
	if err == nil && bad > 0 {
		c.p.note("%d of %s have other bytes than were published, or none", bad, plural(len(found), "file", "files"))
		return said(codeFailed)
	}
	return err
}
