package crew

import "testing"

func TestASoakReplacesItsOwnRowAndNothingElse(t *testing.T) {
	t.Parallel()
	page := withRow("# Faults\n\nwhat it says\n", "stock", "| [stock](x) | 1 |\n")
	page = withRow(page, "leader", "| [leader](x) | 2 |\n")
	page = withRow(page, "stock", "| [stock](x) | 3 |\n")
	if want := "# Faults\n\nwhat it says\n\n" + soakTable + "| [leader](x) | 2 |\n| [stock](x) | 3 |\n"; page != want {
		t.Errorf("the page is\n%s\nwant\n%s", page, want)
	}
}
