package schedule

import (
	_ "embed"
	"strings"
	"time"
)

// zoneNames lists the IANA names for suggestions only; whether a zone exists is asked
// of the time package.
//
//go:embed zones.txt
var zoneNames string

// loadZone returns the location of an IANA name; "" is UTC.
func loadZone(name string) (*time.Location, error) {
	if hostZone(name) {
		return nil, &FieldError{
			"timezone", name, "is the host's zone, which differs between replicas",
			`write an IANA name like "Europe/Berlin", or leave it empty for UTC`,
		}
	}
	similar := suggestZone(name)
	// A file system that ignores case would accept "europe/berlin" on one replica only.
	if similar == name || similar == "" || !strings.EqualFold(similar, name) {
		if loc, err := time.LoadLocation(name); err == nil {
			return loc, nil
		}
	}
	fix := `write a name like "Europe/Berlin" or "UTC"`
	if similar != "" {
		fix = `did you mean "` + similar + `"?`
	}
	return nil, &FieldError{"timezone", name, "is not an IANA zone", fix}
}

// hostZone reports names that the time package resolves through the host's setting,
// and copies of the database that count leap seconds or stand for no zone.
func hostZone(name string) bool {
	n := strings.ToLower(name)
	return n == "local" || n == "localtime" || n == "posixrules" || n == "factory" ||
		strings.HasPrefix(n, "posix/") || strings.HasPrefix(n, "right/")
}

// suggestZone returns the known name that is name, or else comes nearest to it, or "".
func suggestZone(name string) string {
	if name == "" || len(name) > 64 {
		return ""
	}
	low := strings.ToLower(strings.ReplaceAll(strings.TrimSpace(name), " ", "_"))
	best, least := "", 3 // more than two edits apart is another name
	for zone := range strings.FieldsSeq(zoneNames) {
		z := strings.ToLower(zone)
		d := edits(low, z, least)
		if city := z[strings.LastIndexByte(z, '/')+1:]; low == city && d > 1 {
			d = 1
		}
		if zone == name {
			return zone
		}
		if d < least {
			best, least = zone, d
		}
	}
	return best
}

// edits returns the Levenshtein distance of a and b, or limit if it is not less.
func edits(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return min(row[len(b)], limit)
}
