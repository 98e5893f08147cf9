package jobs

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Artifact is one version of a file that a run has published.
type Artifact struct {
	Name         string     `db:"name" json:"name"`
	Version      int64      `db:"version" json:"version"` // 1, 2, …
	Lock         string     `db:"lock" json:"lock"`
	Token        int64      `db:"token" json:"token"`
	Hash         string     `db:"hash" json:"hash"` // SHA-256 of the bytes, in hex
	Size         int64      `db:"size" json:"size"` // in bytes
	File         string     `db:"file" json:"file"` // its name in the store, which never has other bytes
	Holder       string     `db:"holder" json:"holder"`
	Run          uuid.UUID  `db:"run" json:"run"`
	Job          string     `db:"job" json:"job"`
	Key          string     `db:"key" json:"key"` // of the period
	Revision     int        `db:"revision" json:"revision"`
	At           time.Time  `db:"at" json:"at"`                       // when it became the current one, UTC by the database's clock
	SupersededAt *time.Time `db:"superseded_at" json:"superseded_at"` // nil: it is the current one
	RemovedAt    *time.Time `db:"removed_at" json:"removed_at"`       // nil: its bytes are there
}

var (
	// ErrNoStore is returned by [Run.Publish] where [Config] names no store.
	ErrNoStore = errors.New("jobs: no artifact store")
	// ErrArtifactName is what every [*ArtifactNameError] is.
	ErrArtifactName = errors.New("jobs: name of an artifact")
	// ErrNoArtifact says that nothing was ever published under a name.
	ErrNoArtifact = errors.New("jobs: no such artifact")
	// ErrArtifactGone says that the store doesn't have the file that the pointer names: it is another store, or somebody
	// has deleted it.
	ErrArtifactGone = errors.New("jobs: file of an artifact is missing")
	// ErrArtifactChanged says that the bytes in the store are not those that were published.
	ErrArtifactChanged = errors.New("jobs: file of an artifact was changed")
)

// ArtifactNameError says what is wrong with a name.
type ArtifactNameError struct{ Name, Fix string }

// Error implements error.
func (e *ArtifactNameError) Error() string {
	return fmt.Sprintf("jobs: artifact name %q: %s", e.Name, e.Fix)
}

// Is makes the error an [ErrArtifactName].
func (e *ArtifactNameError) Is(target error) bool { return target == ErrArtifactName }

const mostArtifactName = 180 // bytes; with token and hash it is still a file name everywhere

var (
	artifactPart = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*$`)
	artifactFile = regexp.MustCompile(`^(.+)\.([0-9]{1,18})\.[0-9a-f]{16}$`)
	artifactTemp = regexp.MustCompile(`^\.(.+)\.([0-9]{1,18})\.[0-9a-z]+\.tmp$`)
)

// CheckArtifactName returns an [*ArtifactNameError] for a name that can't be published: one has 1 to 180 bytes, in parts of
// letters, digits, dot, _ and - with / between them, such as statements/2026-09/acme.csv.
func CheckArtifactName(name string) error {
	if name == "" || len(name) > mostArtifactName {
		return &ArtifactNameError{name, "use 1 to 180 bytes"}
	}
	for part := range strings.SplitSeq(name, "/") {
		if !artifactPart.MatchString(part) {
			return &ArtifactNameError{name, "use parts of letters, digits, dot, _ and - that don't begin with a dot or -, with one / between them"}
		}
	}
	if artifactFile.MatchString(name) {
		return &ArtifactNameError{name, "let it not end in a number and 16 hexadecimal digits: versions are kept under such names"}
	}
	return nil
}

// fileOfArtifact is the name that these bytes have in the store, and no others ever.
func fileOfArtifact(name string, token int64, hash string) string {
	return name + "." + strconv.FormatInt(token, 10) + "." + hash[:16]
}

// tempOfArtifact is the name of what isn't published yet, beside where it will be.
func tempOfArtifact(name string, token int64) string {
	dir, base := path.Split(name)
	return dir + "." + base + "." + strconv.FormatInt(token, 10) + "." + strings.ReplaceAll(uuid.NewString(), "-", "") + ".tmp"
}

// splitFile is the name and the token that a file in the store was written under. False: it is none of ours.
func splitFile(file string) (name string, token int64, ok bool) {
	dir, base := path.Split(file)
	m := artifactFile.FindStringSubmatch(base)
	if strings.HasPrefix(base, ".") {
		m = artifactTemp.FindStringSubmatch(base)
	}
	if m == nil || CheckArtifactName(dir+m[1]) != nil {
		return "", 0, false
	}
	token, err := strconv.ParseInt(m[2], 10, 64)
	return dir + m[1], token, err == nil
}

// artifactTarget is the mark that says under which lock a name is published, and up to which token.
func artifactTarget(name string) string { return "artifact:" + name }

// missing is [ErrArtifactGone] for a file that isn't in the store.
func missing(a Artifact, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s, version %d: the store has no %s", ErrArtifactGone, a.Name, a.Version, a.File)
	}
	return fmt.Errorf("jobs: open artifact %q: %w", a.Name, err)
}

// timedArtifact gives an artifact's times the zone that people are shown.
func timedArtifact(a *Artifact) { utc(&a.At, a.SupersededAt, a.RemovedAt) }
