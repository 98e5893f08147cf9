package ui

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"pawl/jobs"
)

// Artifacts is what the pages ask of [*jobs.Artifacts].
type Artifacts interface {
	OpenVersion(ctx context.Context, a jobs.Artifact) (*jobs.ArtifactReader, error)
}

// download streams one version of an artifact. It is always saved, never shown: what a job writes must not look like a page
// of ours, whatever policy a program sets that mounts the pages.
func (u *UI) download(q *request) error {
	version, ok := place(q.args["version"])
	if !ok || version == 0 || version == math.MaxInt64 || jobs.CheckArtifactName(q.args["name"]) != nil {
		return notFound("There is no such version.")
	}
	if u.cfg.Artifacts == nil {
		return notFound("This server has no store of artifacts: it was started without --artifacts.")
	}
	a, err := u.version(q.r.Context(), q.args["name"], version)
	if err != nil {
		return err
	}
	f, err := u.cfg.Artifacts.OpenVersion(q.r.Context(), a)
	if errors.Is(err, jobs.ErrArtifactGone) {
		u.cfg.Logger.ErrorContext(q.r.Context(), "ui: artifact isn't in the store", "artifact", a.Name, "version", a.Version, "error", err)
		return &RefusedError{
			Status: http.StatusGone, Title: "Its bytes are missing", Href: addr("ui", "artifacts", a.Name), Link: "All versions",
			Detail: "The file of this version is not in this server’s store: somebody has deleted it, or the runs publish to another store. Ask whoever runs it.",
		}
	}
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it was only read
	SendArtifact(q.w, q.r, f, "attachment", u.cfg.Logger)
	return nil
}

// version is one version whose bytes are kept.
func (u *UI) version(ctx context.Context, name string, version int64) (jobs.Artifact, error) {
	ctx, cancel := context.WithTimeout(ctx, panelTimeout)
	defer cancel()
	list, err := u.cfg.Jobs.ArtifactVersions(ctx, name, version+1, 1)
	switch {
	case err != nil:
		return jobs.Artifact{}, err
	case len(list) == 0 || list[0].Version != version:
		return jobs.Artifact{}, notFound("There is no such version of it: none was published, or it is so old that it was removed.")
	case list[0].RemovedAt != nil:
		return jobs.Artifact{}, &RefusedError{
			Status: http.StatusGone, Title: "Its bytes are gone", Href: addr("ui", "artifacts", name), Link: "All versions",
			Detail: "The bytes of this version were removed at " + list[0].RemovedAt.UTC().Format(time.DateTime) + " UTC: those of superseded versions are kept for a while only.",
		}
	}
	return list[0], nil
}

// SendArtifact answers with an artifact's bytes, or that the client has them already. Whoever wrote them, they must not act as
// a page of ours: they run no script, and send nothing. shown is inline or attachment. What is found to be changed is cut
// off: the client sees that it has less than all.
func SendArtifact(w http.ResponseWriter, r *http.Request, f *jobs.ArtifactReader, shown string, log *slog.Logger) {
	headArtifact(w.Header(), f.Artifact, shown)
	if sameTag(r.Header, f.Hash) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Content-Length", strconv.FormatInt(f.Size, 10))
	if r.Method == http.MethodHead {
		return
	}
	if _, err := io.Copy(unhurried{w, http.NewResponseController(w)}, f); err != nil {
		if errors.Is(err, jobs.ErrArtifactChanged) {
			log.ErrorContext(r.Context(), "web: artifact isn't what was published", "artifact", f.Name, "error", err)
		}
		panic(http.ErrAbortHandler)
	}
}

func headArtifact(h http.Header, f jobs.Artifact, shown string) {
	media, _ := MediaOf(f.Name)
	h.Set("Content-Type", media)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'")
	h.Set("Content-Disposition", shown+`; filename="`+path.Base(f.Name)+`"`)
	h.Set("Cache-Control", "private, no-cache")
	h.Set("ETag", `"`+f.Hash+`"`)
	h.Set("Last-Modified", f.At.Format(http.TimeFormat))
	h.Set("Fencing-Token", strconv.FormatInt(f.Token, 10))
	h.Set("Artifact-Version", strconv.FormatInt(f.Version, 10))
}

// MediaOf knows the few kinds that a browser shows; the others it saves. By the name: nobody guesses from the bytes.
func MediaOf(name string) (media, shown string) {
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
