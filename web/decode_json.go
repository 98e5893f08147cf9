package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// strictJSON tells whether body is one unambiguous JSON text. encoding/json checks the grammar, what follows the
// text, and the depth; it lets pass what two readers may read differently: bytes that aren't UTF-8, half of a surrogate
// pair, and a name given twice.
func strictJSON(body []byte) error {
	if !utf8.Valid(body) {
		return malformedError("The body is not UTF-8: send JSON in UTF-8, without a byte order mark.")
	}
	var whole json.RawMessage
	if err := json.Unmarshal(body, &whole); err != nil {
		return malformedError("The body is not one JSON text (" + err.Error() + "): send one JSON object and nothing after it.")
	}
	if at := loneSurrogate(body); at >= 0 {
		return malformedError(fmt.Sprintf("The body has half of a surrogate pair at byte %d: write the character itself.", at))
	}
	if at := repeatedName(body); at >= 0 {
		return malformedError(fmt.Sprintf("The body has the same name twice in one object, at byte %d: send each once.", at))
	}
	return nil
}

// loneSurrogate is where a \u escape of half a pair stands in a valid JSON text, or -1. Only strings have backslashes.
func loneSurrogate(text []byte) int {
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		at := i
		if i++; text[i] != 'u' {
			continue
		}
		switch high := code(text[i+1:]); {
		case high < 0xD800 || high > 0xDFFF:
			i += 4
		case high <= 0xDBFF && bytes.HasPrefix(text[i+5:], []byte(`\u`)) && isLow(code(text[i+7:])):
			i += 10
		default:
			return at
		}
	}
	return -1
}

func isLow(r uint64) bool { return 0xDC00 <= r && r <= 0xDFFF }

// code reads the four digits that follow \u; the grammar has been checked.
func code(text []byte) uint64 {
	r, _ := strconv.ParseUint(string(text[:4]), 16, 32)
	return r
}

// repeatedName is where an object of a valid JSON text, at any depth, ends a name that it had before, or -1.
func repeatedName(text []byte) int64 {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var open []map[string]bool // the names of each open object; nil for an array
	name := false              // the next token may be a name
	for {
		tok, err := dec.Token()
		if err != nil {
			return -1 // the end: the text is valid
		}
		switch tok := tok.(type) {
		case json.Delim:
			switch tok {
			case '{':
				open = append(open, map[string]bool{})
			case '[':
				open = append(open, nil)
			default:
				open = open[:len(open)-1]
			}
			name = true
			continue
		case string:
			if seen := top(open); seen != nil && name {
				if seen[tok] {
					return dec.InputOffset()
				}
				seen[tok], name = true, false
				continue
			}
		}
		name = true
	}
}

func top(open []map[string]bool) map[string]bool {
	if len(open) == 0 {
		return nil
	}
	return open[len(open)-1]
}
