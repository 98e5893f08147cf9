package jobs

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// ArtifactFilter chooses among artifacts. The zero value means all.
type ArtifactFilter struct {
	Prefix string // of the name
	Job    string // that published the current version
	After  string // only names after this one: the last of the page before
	Limit  int    // default 100, at most 1001
}

// Artifacts are the current versions, by name.
func (h *History) Artifacts(ctx context.Context, f ArtifactFilter) ([]Artifact, error) {
	const (
		all = `
select ` + artifactColumns + ` from pawl.artifacts a join pawl.artifact_versions v using (name, version)
 where a.name > @after and a.name >= @prefix and starts_with(a.name, @prefix) order by a.name limit @limit`
		ofJob = `
select ` + artifactColumns + ` from pawl.artifact_versions v
 where v.superseded_at is null and v.job = @job and v.name > @after and v.name >= @prefix and starts_with(v.name, @prefix) order by v.name limit @limit`
	)
	sql := all
	if f.Job != "" {
		sql = ofJob
	}
	return h.artifacts(ctx, sql, pgx.NamedArgs{"prefix": f.Prefix, "job": f.Job, "after": f.After, "limit": limited(f.Limit)})
}

// ArtifactVersions are the versions of one artifact, the newest first; before 0, or those before that version.
func (h *History) ArtifactVersions(ctx context.Context, name string, before int64, limit int) ([]Artifact, error) {
	const sql = `
select ` + artifactColumns + ` from pawl.artifact_versions v where v.name = @name and (@before = 0 or v.version < @before)
 order by v.version desc limit @limit`
	return h.artifacts(ctx, sql, pgx.NamedArgs{"name": storable(name), "before": before, "limit": limited(limit)})
}

func (h *History) artifacts(ctx context.Context, sql string, args pgx.NamedArgs) ([]Artifact, error) {
	all, err := collect[Artifact](ctx, h, "artifacts", sql, args)
	for i := range all {
		timedArtifact(&all[i])
	}
	return all, err
}
