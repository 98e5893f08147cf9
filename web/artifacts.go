package web

import (
	"context"
	"errors"
	"net/url"
	"strings"

	"pawl/jobs"
	"pawl/web/ui"
)

// Artifacts is what GET /artifacts/{name} and the pages ask of [*jobs.Artifacts].
type Artifacts interface {
	ui.Artifacts
	Open(ctx context.Context, name string) (*jobs.ArtifactReader, error)
}

const artifactsPath = "/artifacts/"

// artifactPath is what stands after /artifacts/, still percent-encoded: a name may have slashes, encoded or not. False:
// nothing can have been published under it.
func artifactPath(escaped string) (apiPath, bool) {
	name, err := url.PathUnescape(escaped)
	if err != nil || jobs.CheckArtifactName(name) != nil {
		return apiPath{}, false
	}
	return apiPath{Resource: name}, true
}

// artifact streams the current version. To a key with a prefix what was published under another lock isn't there.
func (a *api) artifact(c *call) error {
	f, err := a.openArtifact(c)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it was only read
	_, shown := ui.MediaOf(f.Name)
	ui.SendArtifact(c.w, c.r, f, shown, a.cfg.Logger)
	return nil
}

// openArtifact gives the store no deadline: it may read on under the same context.
func (a *api) openArtifact(c *call) (*jobs.ArtifactReader, error) {
	ctx := c.r.Context()
	f, err := a.cfg.Artifacts.Open(ctx, c.path.Resource)
	if err == nil && !strings.HasPrefix(f.Lock, c.key.Prefix) {
		err = errors.Join(jobs.ErrNoArtifact, f.Close())
	}
	switch {
	case errors.Is(err, jobs.ErrNoArtifact):
		return nil, refuse(notFound, "No artifact has this name: check its spelling, and whether the key's prefix reaches the lock that it is published under.")
	case errors.Is(err, jobs.ErrArtifactGone):
		a.cfg.Logger.ErrorContext(ctx, "web: artifact isn't in the store", "artifact", c.path.Resource, "error", err)
		return nil, refuse(artifactMissing, "The artifact was published, but its file is not in this server's store: tell whoever runs it.")
	}
	return f, err
}
