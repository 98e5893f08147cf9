package jobfile

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// mark is a place in the file, from 1.
type mark struct{ line, col int }

// kind is what a node is.
type kind int

const (
	null kind = iota
	text
	number
	boolean
	list
	mapping
)

// String names the kind as a person would.
func (k kind) String() string {
	return [...]string{"nothing", "text", "a number", "true or false", "a list", "a map"}[k]
}

// node is a value of the file.
type node struct {
	kind    kind
	at      mark
	text    string // of a scalar: text without its quotes, others as written
	first   int    // column of text that stands in the file as it is, on one line; else 0
	items   []*node
	entries []entry
}

type entry struct {
	key   string
	at    mark
	value *node
}

// get returns the value of a key, or nil.
func (n *node) get(key string) *node {
	for _, e := range n.entries {
		if e.key == key {
			return e.value
		}
	}
	return nil
}

// placedError is a fault of the YAML itself.
type placedError struct {
	at   mark
	text string
}

func (e *placedError) Error() string { return e.text }

func refuse(at mark, format string, args ...any) error {
	return &placedError{at, fmt.Sprintf(format, args...)}
}

// readYAML returns the file's one document. The error is a *placedError.
func readYAML(source string) (*node, error) {
	file, err := parser.ParseBytes([]byte(source), 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, syntaxError(err)
	}
	root := &node{at: mark{1, 1}}
	for _, doc := range file.Docs {
		switch {
		case doc.Body == nil:
		case doc.Body.Type() == ast.DirectiveType:
			return nil, refuse(markOf(doc.Body), "YAML directives are not read. Remove this line.")
		case root.kind != null:
			at := markOf(doc.Body)
			return nil, refuse(mark{at.line, 1}, "a second document begins here. Keep one document a file.")
		default:
			if root, err = convert(doc.Body); err != nil {
				return nil, err
			}
		}
	}
	return root, nil
}

func syntaxError(err error) error {
	var e interface {
		GetToken() *token.Token
		GetMessage() string
	}
	if !errors.As(err, &e) || e.GetToken() == nil {
		return refuse(mark{1, 1}, "is not YAML: %v.", err)
	}
	at := mark{e.GetToken().Position.Line, e.GetToken().Position.Column}
	hint := ""
	switch e.GetMessage() {
	case "could not find flow map content", "found an invalid key for this map":
		hint = ` A value that begins with {{ must stand in quotes: "{{period.key}}".`
	case "'@' is a reserved character", "'`' is a reserved character":
		hint = ` Put the value in quotes: "@daily".`
	}
	return refuse(at, "is not YAML: %s.%s", e.GetMessage(), hint)
}

func markOf(n ast.Node) mark {
	p := n.GetToken().Position
	return mark{p.Line, p.Column}
}

// convert turns the parser's tree into ours, which has only what a job file may hold.
func convert(n ast.Node) (*node, error) {
	out := &node{at: markOf(n)}
	switch n := n.(type) {
	case *ast.NullNode:
	case *ast.BoolNode:
		out.kind, out.text = boolean, n.Token.Value
	case *ast.IntegerNode:
		out.kind, out.text = number, n.Token.Value
	case *ast.FloatNode:
		out.kind, out.text = number, n.Token.Value
	case *ast.InfinityNode, *ast.NanNode:
		out.kind, out.text = number, n.GetToken().Value
	case *ast.StringNode:
		out.kind, out.text = text, n.Value
		out.first = firstColumn(n)
	case *ast.LiteralNode:
		out.kind, out.text = text, n.Value.Value
	case *ast.SequenceNode:
		return out, out.addItems(n)
	case *ast.MappingNode:
		if !n.IsFlowStyle && len(n.Values) > 0 {
			out.at = markOf(n.Values[0].Key)
		}
		return out, out.addEntries(n.Values)
	case *ast.MappingValueNode:
		out.at = markOf(n.Key)
		return out, out.addEntries([]*ast.MappingValueNode{n})
	case *ast.AnchorNode, *ast.AliasNode:
		return nil, refuse(out.at, "anchors and aliases are not read. Write the value out, or use defaults:.")
	case *ast.TagNode:
		return nil, refuse(out.at, "YAML tags are not read. Remove %s.", n.Start.Value)
	default:
		return nil, refuse(out.at, "YAML's %s is not read here.", n.Type().YAMLName())
	}
	return out, nil
}

// firstColumn returns where the text of n begins, when what follows stands there unescaped.
func firstColumn(n *ast.StringNode) int {
	at := n.Token.Position.Column
	switch origin := strings.TrimSpace(n.Token.Origin); {
	case origin == n.Value:
		return at
	case len(origin) >= 2 && origin[1:len(origin)-1] == n.Value:
		return at + 1
	}
	return 0
}

func (n *node) addItems(seq *ast.SequenceNode) error {
	n.kind = list
	for _, v := range seq.Values {
		item, err := convert(v)
		if err != nil {
			return err
		}
		n.items = append(n.items, item)
	}
	return nil
}

func (n *node) addEntries(values []*ast.MappingValueNode) error {
	n.kind = mapping
	for _, v := range values {
		at := markOf(v.Key)
		switch v.Key.(type) {
		case *ast.StringNode, *ast.IntegerNode, *ast.BoolNode, *ast.FloatNode:
		case *ast.MergeKeyNode:
			return refuse(at, "merge keys are not read. Write the values out, or use defaults:.")
		default:
			return refuse(at, "a key must be a word or a number.")
		}
		value, err := convert(v.Value)
		if err != nil {
			return err
		}
		n.entries = append(n.entries, entry{v.Key.GetToken().Value, at, value})
	}
	return nil
}
