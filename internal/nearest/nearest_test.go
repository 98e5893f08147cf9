package nearest_test

import (
	"testing"

	"pawl/internal/nearest"
)

func TestOnlyASlipIsGuessed(t *testing.T) {
	t.Parallel()
	known := []string{"mode", "day", "time_out"}
	for word, want := range map[string]string{"mod": "mode", "Mode": "mode", "dya": "day", "timeout": "time_out", "rate": "", "": ""} {
		if got := nearest.Word(word, known); got != want {
			t.Errorf("Word(%q) = %q, want %q", word, got, want)
		}
	}
	if got := nearest.DidYouMean("mod", known); got != ` Did you mean "mode"?` {
		t.Errorf("DidYouMean = %q", got)
	}
}
