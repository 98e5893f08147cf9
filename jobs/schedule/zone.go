package schedule

import (
	"strings"
	"time"
)

// loadZone returns the location of an IANA name; "" is UTC.
func loadZone(name string) (*time.Location, error) {
	if name == "" || name == "UTC" {
		return time.UTC, nil
	}
	if hostZone(name) {
		return nil, &FieldError{
			"timezone", name, "is the host's zone, which differs between replicas",
			`write an IANA name like "Europe/Berlin", or leave it empty for UTC`,
		}
	}
	if loc := openZones().location(name); loc != nil {
		return loc, nil
	}
	fix := `write a name like "Europe/Berlin" or "UTC"`
	if similar := suggestZone(name); similar != "" {
		fix = `did you mean "` + similar + `"?`
	}
	return nil, about(ErrZoneName, "timezone", name, fix)
}

// hostZone reports names that elsewhere stand for the host's setting, or for none.
func hostZone(name string) bool {
	n := strings.ToLower(name)
	return n == "local" || n == "localtime" || n == "posixrules" || n == "factory"
}

// suggestZone returns the known name that comes nearest to name, or "".
func suggestZone(name string) string {
	if len(name) > 64 {
		return ""
	}
	low := strings.ToLower(strings.ReplaceAll(strings.TrimSpace(name), " ", "_"))
	best, least := "", 3 // more than two edits apart is another name
	for _, zone := range openZones().names {
		z := strings.ToLower(zone)
		d := edits(low, z, least)
		if city := z[strings.LastIndexByte(z, '/')+1:]; low == city && d > 1 {
			d = 1
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

// Zone returns an IANA time zone from the embedded data, never the host's, or
// a [*FieldError] that names the nearest zone.
func Zone(name string) (*time.Location, error) { return loadZone(name) }
