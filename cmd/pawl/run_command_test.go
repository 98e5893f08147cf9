package main

import (
	"strings"
	"testing"

	"pawl/lockrepo/lockclient"
)

func TestAServerThatWantsAKeyIsAReasonToNameTheFlag(t *testing.T) {
	t.Parallel()
	refusal := &lockclient.StatusError{Status: 401, Slug: "unauthorized", Detail: "This key is unknown."}
	for file, want := range map[string]string{"": "--key-file", "a.key": "This key is unknown."} {
		err := (&cli{}).notHad(&runFlags{keyFile: file}, refusal)
		if codeOf(err) != codeUsage || !strings.Contains(err.Error(), want) {
			t.Errorf("with --key-file %q: %v, want it to say %q", file, err, want)
		}
	}
}
