package nearest

import "strings"

// DidYouMean returns ` Did you mean "x"?` for the candidate that word is a slip of, or "".
func DidYouMean(word string, candidates []string) string {
	if near := Word(word, candidates); near != "" {
		return ` Did you mean "` + near + `"?`
	}
	return ""
}

// Word returns the candidate that is at most two edits away, and not quite another
// word; "" when there is none.
func Word(word string, candidates []string) string {
	best, least := "", 3
	low := plain(word)
	for _, c := range candidates {
		other := plain(c)
		if d := edits(low, other); d < least && d <= max(len(low), len(other))/3 {
			best, least = c, d
		}
	}
	return best
}

// plain leaves out what people vary without meaning anything by it.
func plain(word string) string {
	return strings.NewReplacer("_", "", "-", "", " ", "").Replace(strings.ToLower(word))
}

// edits returns how many letters must be changed, added, left out or swapped with their
// neighbour to make b of a short a; a large number for long ones.
func edits(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	before, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next := make([]int, len(b)+1)
		next[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			next[j+1] = min(row[j]+cost, row[j+1]+1, next[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}
