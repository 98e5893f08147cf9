package jobfile

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// parseDuration reads Go's durations, which may begin with days of 24 hours: "7d",
// "1d12h". problem says what is wrong with the text and how to mend it, or is "".
func parseDuration(text string) (d time.Duration, problem string) {
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return 0, fmt.Sprintf("%s has no unit. Write %[1]ss, %[1]sm or %[1]sh.", text)
	}
	days, rest, found := strings.Cut(text, "d")
	if !found {
		days, rest = "0", text
	}
	n, err := strconv.ParseUint(days, 10, 16)
	if rest != "" && err == nil {
		d, err = time.ParseDuration(rest)
	}
	switch {
	case err != nil:
		return 0, fmt.Sprintf("%q is not a duration. Write one like 30s, 20m, 1h30m or 7d.", text)
	case d < 0:
		return 0, fmt.Sprintf("%q is negative. Write a duration like 30s.", text)
	case time.Duration(n) > (math.MaxInt64-d)/(24*time.Hour):
		return 0, fmt.Sprintf("%q is too long. Write at most 36500d.", text)
	}
	return time.Duration(n)*24*time.Hour + d, ""
}

// Size is a number of bytes. In the file it has a unit: B, KiB, MiB or GiB.
type Size int64

var sizeText = regexp.MustCompile(`^(\d{1,9}) ?(B|KiB|MiB|GiB)$`)

// parseSize reads a size. problem says what is wrong with the text, or is "".
func parseSize(text string) (s Size, problem string) {
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return 0, fmt.Sprintf("%s has no unit. Write %[1]sB, %[1]sKiB or %[1]sMiB.", text)
	}
	m := sizeText.FindStringSubmatch(text)
	if m == nil {
		return 0, fmt.Sprintf("%q is not a size. Write one like 64KiB or 1MiB.", text)
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil {
		return 0, err.Error() // nine digits always fit
	}
	return Size(n) << (10 * slices.Index([]string{"B", "KiB", "MiB", "GiB"}, m[2])), ""
}

// String returns the size in its largest whole unit: "1MiB".
func (s Size) String() string {
	units := []string{"B", "KiB", "MiB", "GiB"}
	i := 0
	for ; i < len(units)-1 && s != 0 && s%1024 == 0; i++ {
		s /= 1024
	}
	return strconv.FormatInt(int64(s), 10) + units[i]
}

// Rows is a condition on a number of rows. The zero Rows is met by any number.
type Rows struct {
	Op string // "=", "!=", ">", ">=", "<", "<=", or "" for no condition
	N  int64
}

var rowsText = regexp.MustCompile(`^(=|!=|>=|<=|>|<)? ?(\d{1,18})$`)

// parseRows reads a condition. problem says what is wrong with the text, or is "".
func parseRows(text string) (r Rows, problem string) {
	m := rowsText.FindStringSubmatch(text)
	if m == nil {
		return r, fmt.Sprintf(`%q is not a condition on a number. Write one like 5, ">0" or "<=100".`, text)
	}
	if r.Op = m[1]; r.Op == "" {
		r.Op = "="
	}
	var err error
	if r.N, err = strconv.ParseInt(m[2], 10, 64); err != nil {
		return r, err.Error() // eighteen digits always fit
	}
	return r, ""
}

// String returns the condition as it is written: ">0".
func (r Rows) String() string {
	if r.Op == "" {
		return ""
	}
	return r.Op + strconv.FormatInt(r.N, 10)
}

// Cause is why an http job is tried again: a status code, or "connect".
type Cause string

// parseCause reads a cause. problem says what is wrong with the text, or is "".
func parseCause(text string) (c Cause, problem string) {
	if n, err := strconv.Atoi(text); text == "connect" || err == nil && n >= 100 && n <= 599 {
		return Cause(text), ""
	}
	return "", fmt.Sprintf("%q is not a cause. Write a status code from 100 to 599, or connect.", text)
}
