package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

var picture = regexp.MustCompile(`(?:src|srcset)="([^"]+\.png)"`)

// Every picture that a page shows is there, in both themes, and small; and none is there that no page shows.
func TestEveryPictureIsThereInBothThemesAndSmall(t *testing.T) {
	t.Parallel()
	const most = 200 << 10
	pages, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	var shown []string
	for _, page := range append(pages, "../README.md") {
		for _, m := range picture.FindAllStringSubmatch(read(t, page), -1) {
			file := filepath.Join(filepath.Dir(page), m[1])
			shown = append(shown, file)
			if info, err := os.Stat(file); err != nil || info.Size() > most {
				t.Errorf("%s shows %s: %v, or it has more than %d KB: run make screenshots", page, m[1], err, most>>10)
			}
		}
	}
	have, err := filepath.Glob("img/*.png")
	if err != nil {
		t.Fatal(err)
	}
	for i, file := range shown {
		shown[i] = filepath.Join("img", filepath.Base(file))
	}
	slices.Sort(shown)
	if shown = slices.Compact(shown); !slices.Equal(shown, have) || len(have) < 6 || len(have)%2 != 0 {
		t.Errorf("the pages show %q, and there are %q", shown, have)
	}
}
