package ui

import (
	"context"
	"strconv"

	"pawl/jobs"
)

// artifactsPage is the current versions, by name.
type artifactsPage struct {
	Filter    jobs.ArtifactFilter
	Next      string // the name after which the next page begins; empty: this is the last
	Artifacts Panel[jobs.Artifact]
}

func (u *UI) artifacts(q *request) error {
	query := q.r.URL.Query()
	p := artifactsPage{Filter: jobs.ArtifactFilter{Prefix: query.Get("q"), Job: query.Get("job"), After: query.Get("after")}}
	p = share(q.r.Context(), u.shared, "artifacts?"+query.Encode(), func(ctx context.Context) artifactsPage {
		p.Artifacts = panel(ctx, perPage, func(ctx context.Context, n int) ([]jobs.Artifact, error) {
			f := p.Filter
			f.Limit = n
			return u.cfg.Jobs.Artifacts(ctx, f)
		})
		if p.Artifacts.More {
			p.Next = p.Artifacts.Rows[len(p.Artifacts.Rows)-1].Name
		}
		return p
	})
	return u.render(q, view{Name: "artifacts", Title: "Artifacts", Nav: "jobs", Data: p})
}

// artifactPage is the versions of one artifact, the newest first.
type artifactPage struct {
	Artifact string
	Next     string // the version before which the next page begins; empty: this is the last
	Versions Panel[jobs.Artifact]
}

func (u *UI) artifact(q *request) error {
	name, query := q.args["name"], q.r.URL.Query()
	before, err := number(query, "before")
	if err != nil {
		return err
	}
	p := share(q.r.Context(), u.shared, "artifact/"+name+"?"+query.Encode(), func(ctx context.Context) artifactPage {
		p := artifactPage{Artifact: name}
		p.Versions = panel(ctx, perPage, func(ctx context.Context, n int) ([]jobs.Artifact, error) {
			return u.cfg.Jobs.ArtifactVersions(ctx, name, before, n)
		})
		if p.Versions.More {
			p.Next = strconv.FormatInt(p.Versions.Rows[len(p.Versions.Rows)-1].Version, 10)
		}
		return p
	})
	if p.Versions.Away == "" && len(p.Versions.Rows) == 0 && before == 0 {
		return notFound("There is no artifact of that name: nothing was ever published under it.")
	}
	return u.render(q, view{Name: "artifact", Title: name, Nav: "jobs", Data: p})
}

// hashShort is enough of a hash to tell versions apart.
func hashShort(hash string) string { return hash[:min(12, len(hash))] }

// bytesOf is a size for people.
func bytesOf(n int64) string {
	const step = 1024
	if n < step {
		return strconv.FormatInt(n, 10) + nb + "B"
	}
	size, unit := float64(n)/step, 0
	for ; size >= step && unit < len(units)-1; unit++ {
		size /= step
	}
	return strconv.FormatFloat(size, 'f', 1, 64) + nb + units[unit:unit+1] + "iB"
}

const units = "KMGTPE"
