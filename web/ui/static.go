package ui

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"path"
	"sync"
)

//go:embed templates static
var files embed.FS

// staticHash names the state of all files under static, so that browsers may keep them for ever and still get new
// ones with a new binary.
var staticHash = sync.OnceValue(func() string {
	sum := sha256.New()
	for _, name := range staticNames() {
		b, _ := files.ReadFile("static/" + name) // embedded: it is there
		sum.Write(b)
	}
	return hex.EncodeToString(sum.Sum(nil)[:6])
})

// staticNames lists what is served, sorted.
func staticNames() []string {
	entries, _ := fs.ReadDir(files, "static") // embedded: it is there
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// contentType doesn't ask the machine, whose table of types may lack fonts.
func contentType(name string) string {
	switch path.Ext(name) {
	case ".css":
		return "text/css; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	case ".woff2":
		return "font/woff2"
	default:
		return "text/plain; charset=utf-8"
	}
}

// StaticPath is where the files are, below the base. It changes with them.
func StaticPath() string { return "/ui/static/" + staticHash() }

func (u *UI) static(q *request) error {
	name := q.args["file"]
	b, err := files.ReadFile("static/" + name)
	if err != nil || q.args["hash"] != staticHash() {
		return notFound("This file belongs to another version of the page: load the page again.")
	}
	q.w.Header().Set("Content-Type", contentType(name))
	q.w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	_, _ = q.w.Write(b) // the reader may have gone
	return nil
}
