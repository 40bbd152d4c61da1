package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"regexp"
	"unicode/utf8"
)

// document is a JSON document that encoding/json has found to be one. Its values are read where they stand
// and none is kept: a tree of them, with their places, would take many times the memory of the document.
type document []byte

// node is a value of a document. It is absent when it has no bytes: then in is where it should be.
type node struct {
	in         *node  // the list or object that it is in; nil: it is the document
	name       string // its name in an object
	index      int    // its place in a list; inObject in an object
	begin, end int    // its bytes
}

// inObject is the index of what has a name.
const inObject = -1

// path says where it is, as policy.idle[0].cron.
func (n node) path() string {
	switch {
	case n.in == nil:
		return ""
	case n.index == inObject:
		return join(n.in.path(), n.name)
	}
	return fmt.Sprintf("%s[%d]", n.in.path(), n.index)
}

// offset is where it begins, in bytes, or where the object begins that lacks it.
func (n node) offset() int {
	for n.begin == n.end && n.in != nil {
		n = *n.in
	}
	return n.begin
}

// plainName is one that needs no quotes in a path.
var plainName = regexp.MustCompile(`^[a-z_]{1,60}$`)

// join is the path of a field.
func join(path, name string) string {
	switch {
	case !plainName.MatchString(name):
		return fmt.Sprintf("%s[%.60q]", path, name)
	case path == "":
		return name
	}
	return path + "." + name
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// check looks whether it is one JSON value in UTF-8, and says where it is not and what to do.
func (d document) check() (offset int, err error) {
	begin := d.space(0)
	switch {
	case !utf8.Valid(d):
		return 0, errors.New("it is not UTF-8; save it as that")
	case bytes.HasPrefix(d, byteOrderMark):
		return 0, errors.New("it begins with a byte order mark; save it as UTF-8 without one")
	case begin == len(d):
		return 0, errors.New("it is empty; write a snapshot, as `controld snapshot` does")
	case json.Valid(d):
		return 0, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(d))
	err = decoder.Decode(new(json.RawMessage))
	var syntax *json.SyntaxError
	switch {
	case err == nil:
		return d.space(int(decoder.InputOffset())), errors.New("something follows its end; write one JSON object alone")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return len(d), errors.New("it ends too early; the rest of it is missing, so write it again")
	case d[begin] != '{' && d[begin] != '[':
		return begin, errors.New("it is not JSON; write one JSON object, as `controld snapshot` does (YAML is not read)")
	case errors.As(err, &syntax):
		return int(syntax.Offset) - 1, err
	}
	return 0, err
}

// root is the document's value.
func (d document) root() node {
	begin := d.space(0)
	return node{begin: begin, end: d.valueEnd(begin)}
}

// space is where the white space ends that begins at i.
func (d document) space(i int) int {
	for i < len(d) && (d[i] == ' ' || d[i] == '\t' || d[i] == '\r' || d[i] == '\n') {
		i++
	}
	return i
}

// next is where the next value begins, or the list or object ends, after i.
func (d document) next(i int) int {
	for i = d.space(i); d[i] == ',' || d[i] == ':'; {
		i = d.space(i + 1)
	}
	return i
}

// valueEnd is where the value ends that begins at i.
func (d document) valueEnd(i int) int {
	switch d[i] {
	case '"':
		return d.textEnd(i)
	case '{', '[':
		return d.bracketEnd(i)
	}
	if length := bytes.IndexAny(d[i:], " \t\r\n,]}"); length >= 0 {
		return i + length
	}
	return len(d)
}

func (d document) textEnd(i int) int {
	for i++; d[i] != '"'; i++ {
		if d[i] == '\\' {
			i++
		}
	}
	return i + 1
}

func (d document) bracketEnd(i int) int {
	for depth := 0; ; i++ {
		switch d[i] {
		case '"':
			i = d.textEnd(i) - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
}

// items are the values of a list.
func (d document) items(list *node) iter.Seq[node] {
	return func(yield func(node) bool) {
		index := 0
		for i := d.next(list.begin + 1); i < list.end-1; index++ {
			end := d.valueEnd(i)
			if !yield(node{in: list, index: index, begin: i, end: end}) {
				return
			}
			i = d.next(end)
		}
	}
}

// members are the names of an object, as they stand there, and their values.
func (d document) members(object *node) iter.Seq2[node, node] {
	return func(yield func(name, value node) bool) {
		for i := d.next(object.begin + 1); i < object.end-1; {
			name := node{in: object, index: inObject, begin: i, end: d.textEnd(i)}
			begin := d.next(name.end)
			value := node{in: object, index: inObject, begin: begin, end: d.valueEnd(begin)}
			if !yield(name, value) {
				return
			}
			i = d.next(value.end)
		}
	}
}

func (d document) bytes(n node) []byte { return d[n.begin:n.end] }

// kind is what a value is, in words.
func (d document) kind(n node) string {
	if n.begin == n.end {
		return kindNull
	}
	switch d[n.begin] {
	case '"':
		return kindText
	case '{':
		return kindObject
	case '[':
		return kindList
	case 't', 'f':
		return kindBoolean
	case 'n':
		return kindNull
	}
	return kindNumber
}

// The kinds of values. What is absent is as good as null.
const (
	kindNull    = "null"
	kindBoolean = "a boolean"
	kindNumber  = "a number"
	kindText    = "a text"
	kindList    = "a list"
	kindObject  = "an object"
)

// text is the value of a text.
func (d document) text(n node) string {
	raw := d.bytes(n)
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1])
	}
	var text string
	_ = json.Unmarshal(raw, &text) // the document was found to be well-formed
	return text
}

// is reports whether a text is this one, without a copy of it.
func (d document) is(n node, text string) bool {
	raw := d.bytes(n)
	return string(raw[1:len(raw)-1]) == text || bytes.IndexByte(raw, '\\') >= 0 && d.text(n) == text
}
