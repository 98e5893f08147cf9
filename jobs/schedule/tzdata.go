package schedule

import (
	"archive/zip"
	_ "embed"
	"io"
	"strings"
	"sync"
	"time"
)

// tzVersion names the release of the time zone database in zoneinfo.zip, which is
// lib/time/zoneinfo.zip of the Go distribution. A test ties the two together: whoever
// replaces the file changes both.
const tzVersion = "2025c"

// zoneinfo is embedded here, and not taken from time/tzdata, since the time package
// asks the host's files first: two replicas could then disagree on when a tick is due.
//
//go:embed zoneinfo.zip
var zoneinfo string

// TZVersion returns the release of the embedded time zone database, like "2025c". The
// same binary has the same zones on every host.
func TZVersion() string { return tzVersion }

// zones is the embedded database: its names in order, and the file of each.
type zones struct {
	names []string
	files map[string]*zip.File
}

// openZones reads the directory of the embedded file, once per process.
var openZones = sync.OnceValue(func() zones {
	z := zones{files: map[string]*zip.File{}}
	r, err := zip.NewReader(strings.NewReader(zoneinfo), int64(len(zoneinfo)))
	if err != nil {
		return z // no zone is found then; a test reads them all
	}
	for _, f := range r.File {
		if !strings.HasSuffix(f.Name, "/") && !hostZone(f.Name) {
			z.names = append(z.names, f.Name)
			z.files[f.Name] = f
		}
	}
	return z
})

// location returns the zone of that exact name, nil if there is none.
func (z zones) location(name string) *time.Location {
	f := z.files[name]
	if f == nil {
		return nil
	}
	r, err := f.Open()
	if err != nil {
		return nil
	}
	defer func() { _ = r.Close() }()
	data, err := io.ReadAll(r)
	if err != nil {
		return nil
	}
	loc, err := time.LoadLocationFromTZData(name, data)
	if err != nil {
		return nil
	}
	return loc
}
