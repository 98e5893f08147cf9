package docs_test

import (
	"strings"
	"testing"
)

func TestEveryGuaranteeAndEveryLimitNamesItsTest(t *testing.T) {
	t.Parallel()
	lines, limits := rows(read(t, "guarantees.md")), 0
	for _, row := range lines {
		if len(row) != 2 || !strings.HasSuffix(row[0], ".") || !named.MatchString(row[1]) {
			t.Errorf("%q: want a sentence and a test", row[0])
		}
		if strings.HasPrefix(row[0], "Limit: ") {
			limits++
		}
	}
	if len(lines) < 15 || limits < 4 {
		t.Errorf("%d lines, %d limits: is the pattern right?", len(lines), limits)
	}
}
