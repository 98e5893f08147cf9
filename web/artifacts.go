package web

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"pawl/jobs"
)

// Artifacts is what GET /artifacts/{name} asks of [*jobs.Artifacts].
type Artifacts interface {
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
	a.headArtifact(c, f.Artifact)
	if sameTag(c.r.Header, f.Hash) {
		c.w.WriteHeader(http.StatusNotModified)
		return nil
	}
	c.w.Header().Set("Content-Length", strconv.FormatInt(f.Size, 10))
	if c.r.Method == http.MethodHead {
		return nil
	}
	if _, err := io.Copy(unhurried{c.w, http.NewResponseController(c.w)}, f); err != nil {
		if errors.Is(err, jobs.ErrArtifactChanged) {
			a.cfg.Logger.ErrorContext(c.r.Context(), "web: artifact isn't what was published", "artifact", f.Name, "error", err)
		}
		panic(http.ErrAbortHandler) // so that the client sees that it has less than all
	}
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
		return nil, refuse(unavailable, "The artifact's file is not in this server's store: ask whoever runs it.")
	}
	return f, err
}

// headArtifact says what comes. Whoever wrote it, it must not act as a page of ours: it runs no script, and sends nothing.
func (a *api) headArtifact(c *call, f jobs.Artifact) {
	h := c.w.Header()
	media, shown := mediaOf(f.Name)
	h.Set("Content-Type", media)
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'")
	h.Set("Content-Disposition", shown+`; filename="`+path.Base(f.Name)+`"`)
	h.Set("Cache-Control", "private, no-cache")
	h.Set("ETag", `"`+f.Hash+`"`)
	h.Set("Last-Modified", f.At.Format(http.TimeFormat))
	h.Set("Fencing-Token", strconv.FormatInt(f.Token, 10))
	h.Set("Artifact-Version", strconv.FormatInt(f.Version, 10))
}

// mediaOf knows the few kinds that a browser shows; the others it saves. By the name: nobody guesses from the bytes.
func mediaOf(name string) (media, shown string) {
	switch strings.ToLower(path.Ext(name)) {
	case ".html", ".htm":
		return "text/html; charset=utf-8", "inline"
	case ".txt", ".log":
		return "text/plain; charset=utf-8", "inline"
	case ".csv":
		return "text/csv; charset=utf-8", "attachment"
	case ".json":
		return "application/json", "attachment"
	case ".pdf":
		return "application/pdf", "attachment"
	}
	return "application/octet-stream", "attachment"
}

// sameTag tells whether the client has these bytes already.
func sameTag(h http.Header, hash string) bool {
	for _, value := range h.Values("If-None-Match") {
		for tag := range strings.SplitSeq(value, ",") {
			if tag = strings.TrimPrefix(strings.TrimSpace(tag), "W/"); tag == "*" || tag == `"`+hash+`"` {
				return true
			}
		}
	}
	return false
}

// unhurried lets a large file take its time, as long as the client goes on reading.
type unhurried struct {
	w    http.ResponseWriter
	conn *http.ResponseController
}

const readPatience = 30 * time.Second // for one piece of it

func (u unhurried) Write(b []byte) (int, error) {
	_ = u.conn.SetWriteDeadline(time.Now().Add(readPatience)) // not every server can
	return u.w.Write(b)
}
