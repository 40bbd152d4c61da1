package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"unicode/utf8"
)

// maxDepth bounds how deep a snapshot's lists and objects are in each other.
// Ours are four deep.
const maxDepth = 16

// node is a value of a JSON document with its place.
type node struct {
	path   string // as policy.idle[0].cron
	offset int    // where it begins, in bytes
	value  any    // nil, bool, string, json.Number, []node or object
}

// object is a JSON object; keys are its names in their order.
type object struct {
	keys   []string
	fields map[string]node
}

// errDocument is a document that is not one JSON value.
type errDocument struct {
	offset int
	err    error
}

func (e *errDocument) Error() string { return e.err.Error() }
func (e *errDocument) Unwrap() error { return e.err }

// document reads one JSON value. Other than encoding/json it knows the place of
// each, and refuses a name that an object has twice and text that is not UTF-8:
// which of two values counts, nobody should have to know.
func document(data []byte) (node, error) {
	if !utf8.Valid(data) {
		return node{}, &errDocument{0, errors.New("it is not UTF-8")}
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	p := documentParser{d, data}
	root, err := p.value("", 0)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("something follows its end")
		}
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("it ends too early")
	}
	if err != nil {
		return node{}, &errDocument{int(d.InputOffset()), err}
	}
	return root, nil
}

type documentParser struct {
	*json.Decoder
	data []byte
}

// next is where the next token begins.
func (p documentParser) next() int {
	rest := p.data[p.InputOffset():]
	return len(p.data) - len(bytes.TrimLeft(rest, " \t\r\n:,"))
}

func (p documentParser) value(path string, depth int) (node, error) {
	if depth > maxDepth {
		return node{}, fmt.Errorf("%s is more than %d lists and objects deep", path, maxDepth)
	}
	offset := p.next()
	token, err := p.Token()
	if err != nil {
		return node{}, err
	}
	n := node{path: path, offset: offset, value: token}
	switch token {
	case json.Delim('['):
		n.value, err = p.list(path, depth)
	case json.Delim('{'):
		n.value, err = p.object(path, depth)
	}
	return n, err
}

func (p documentParser) list(path string, depth int) ([]node, error) {
	items := []node{}
	for p.More() {
		item, err := p.value(fmt.Sprintf("%s[%d]", path, len(items)), depth+1)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	_, err := p.Token()
	return items, err
}

func (p documentParser) object(path string, depth int) (object, error) {
	o := object{fields: map[string]node{}}
	for p.More() {
		token, err := p.Token()
		if err != nil {
			return o, err
		}
		key, ok := token.(string)
		if !ok {
			return o, fmt.Errorf("%s has a name that is no text", path)
		}
		at := join(path, key)
		if _, twice := o.fields[key]; twice {
			return o, fmt.Errorf("%s is given twice", at)
		}
		value, err := p.value(at, depth+1)
		if err != nil {
			return o, err
		}
		o.keys, o.fields[key] = append(o.keys, key), value
	}
	_, err := p.Token()
	return o, err
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
