package kinds

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// statement is one SQL statement: its pieces of text, between which its parameters stand.
type statement struct {
	pieces []string
	params []int    // $1 is 1
	words  []string // the first few keywords, in capitals
}

// text is the statement with its parameters numbered anew, $1, $2, …, and of is which parameter each of them was: a
// statement of many need not use all, and the server wants none that isn't there.
func (s statement) text() (text string, of []int) {
	var b strings.Builder
	at := map[int]int{}
	for i, piece := range s.pieces {
		b.WriteString(piece)
		if i == len(s.params) {
			break
		}
		n, known := at[s.params[i]]
		if !known {
			of = append(of, s.params[i])
			n = len(of)
			at[s.params[i]] = n
		}
		b.WriteString("$" + strconv.Itoa(n))
	}
	return b.String(), of
}

// with is the statement's text with those of the arguments that it uses.
func (s statement) with(args []any) (text string, its []any) {
	text, of := s.text()
	for _, n := range of {
		its = append(its, args[n-1])
	}
	return text, its
}

// mostWords is how many keywords of a statement are kept: those of create or replace function, and one more.
const mostWords = 5

// split cuts SQL text into its statements, as psql does: at semicolons outside of quotes, comments, parentheses and the
// bodies of functions in SQL. Statements without a word in them are left out.
func split(text string) []statement {
	s := scanner{text: text}
	for s.at < len(text) {
		s.next()
	}
	s.end()
	return s.out
}

type scanner struct {
	text  string
	at    int // what is looked at
	from  int // the present piece begins there
	out   []statement
	now   statement
	full  bool // something besides space and comments was seen
	paren int
	depth int // of BEGIN and CASE in the body of a function
}

// next takes what is at s.at: a character, a word, or a whole quoted thing.
func (s *scanner) next() {
	rest := s.text[s.at:]
	switch c := rest[0]; {
	case strings.HasPrefix(rest, "--"):
		s.skip(upTo(rest, "\n", 2))
	case strings.HasPrefix(rest, "/*"):
		s.skip(comment(rest))
	case c == '\'':
		s.take(quoted(rest, '\'', false))
	case c == '"':
		s.take(quoted(rest, '"', false))
	case c == '$':
		s.dollar(rest)
	case c >= utf8.RuneSelf || isLetter(c):
		s.word(rest)
	case isDigit(c):
		s.take(span(rest, func(c byte) bool { return isDigit(c) || isLetter(c) || c == '.' }))
	case c == ';' && s.paren == 0 && s.depth == 0:
		s.end()
		s.at++
		s.from = s.at
	case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v':
		s.skip(1)
	default:
		s.parenthesis(c)
		s.take(1)
	}
}

func (s *scanner) skip(n int) { s.at += n }

func (s *scanner) take(n int) { s.full, s.at = true, s.at+n }

func (s *scanner) parenthesis(c byte) {
	switch c {
	case '(':
		s.paren++
	case ')':
		s.paren = max(s.paren-1, 0)
	}
}

// dollar takes a parameter or a dollar-quoted string.
func (s *scanner) dollar(rest string) {
	digits := span(rest[1:], isDigit)
	if digits > 0 && digits < 6 {
		s.now.pieces = append(s.now.pieces, s.text[s.from:s.at])
		n, _ := strconv.Atoi(rest[1 : 1+digits]) // digits they are
		s.now.params = append(s.now.params, n)
		s.take(1 + digits)
		s.from = s.at
		return
	}
	tag := 1 + span(rest[1:], func(c byte) bool { return isLetter(c) || isDigit(c) || c >= utf8.RuneSelf })
	if tag >= len(rest) || rest[tag] != '$' {
		s.take(1)
		return
	}
	s.take(upTo(rest, rest[:tag+1], tag+1))
}

// word takes an identifier or keyword, or a string that begins with a letter.
func (s *scanner) word(rest string) {
	n := span(rest, func(c byte) bool { return isLetter(c) || isDigit(c) || c == '$' || c >= utf8.RuneSelf })
	word := strings.ToUpper(rest[:n])
	if word == "E" && n < len(rest) && rest[n] == '\'' {
		s.take(n + quoted(rest[n:], '\'', true))
		return
	}
	if len(s.now.words) < mostWords {
		s.now.words = append(s.now.words, word)
	}
	s.body(word)
	s.take(n)
}

// body follows BEGIN ATOMIC … END, whose statements end in semicolons.
func (s *scanner) body(word string) {
	switch {
	case !s.createsRoutine():
	case word == "BEGIN", word == "CASE" && s.depth > 0:
		s.depth++
	case word == "END" && s.depth > 0:
		s.depth--
	}
}

func (s *scanner) createsRoutine() bool {
	w := s.now.words
	if len(w) == 0 || w[0] != "CREATE" {
		return false
	}
	for _, word := range w[1:] {
		if word == "FUNCTION" || word == "PROCEDURE" {
			return true
		}
	}
	return false
}

// end ends the present statement.
func (s *scanner) end() {
	if s.full {
		s.now.pieces = append(s.now.pieces, s.text[s.from:s.at])
		s.out = append(s.out, s.now)
	}
	s.now, s.full, s.paren, s.depth = statement{}, false, 0, 0
}

// upTo is the length of text up to and with the first end after from, or all of it.
func upTo(text, end string, from int) int {
	if i := strings.Index(text[from:], end); i >= 0 {
		return from + i + len(end)
	}
	return len(text)
}

// comment is the length of a comment, which may hold others.
func comment(text string) int {
	depth := 0
	for i := 0; i < len(text)-1; i++ {
		switch text[i : i+2] {
		case "/*":
			depth, i = depth+1, i+1
		case "*/":
			if depth, i = depth-1, i+1; depth == 0 {
				return i + 1
			}
		}
	}
	return len(text)
}

// quoted is the length of what is in quotes; doubled, a quote is a character.
func quoted(text string, quote byte, escapes bool) int {
	for i := 1; i < len(text); i++ {
		switch {
		case escapes && text[i] == '\\':
			i++
		case text[i] != quote:
		case i+1 < len(text) && text[i+1] == quote:
			i++
		default:
			return i + 1
		}
	}
	return len(text)
}

// span is how long text goes on like that.
func span(text string, is func(byte) bool) int {
	for i := range len(text) {
		if !is(text[i]) {
			return i
		}
	}
	return len(text)
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isLetter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' }
