// Package output prints what programs read: the messages of the contract, and values of the command, as JSON or YAML. The
// bytes are the same for the same message.
package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// Format is how an answer is printed.
type Format string

// The formats.
const (
	Table Format = "table" // aligned columns, times relative to now
	Wide  Format = "wide"  // more columns, times as RFC 3339
	JSON  Format = "json"
	YAML  Format = "yaml"
)

// Formats are all of them.
var Formats = []string{string(Table), string(Wide), string(JSON), string(YAML)}

// ForPrograms reports whether the format is read by programs.
func (f Format) ForPrograms() bool { return f == JSON || f == YAML }

// String is the name; with Set and Type the format is a flag.
func (f *Format) String() string { return string(*f) }

// Type is what help calls the value.
func (f *Format) Type() string { return "FORMAT" }

// Set takes a name.
func (f *Format) Set(name string) error {
	for _, known := range Formats {
		if name == known {
			*f = Format(name)
			return nil
		}
	}
	return fmt.Errorf("write one of %v", Formats)
}

// Message prints a message of the contract by the JSON mapping of protobuf, with fields that are empty.
func Message(w io.Writer, f Format, m proto.Message) error {
	data, err := encode(m)
	if err != nil {
		return err
	}
	return write(w, f, data, "  ")
}

// Line prints a message on a line of its own, or as a document of a YAML stream.
func Line(w io.Writer, f Format, m proto.Message) error {
	data, err := encode(m)
	if err != nil {
		return err
	}
	if f == YAML {
		if _, err := io.WriteString(w, "---\n"); err != nil {
			return err
		}
	}
	return write(w, f, data, "")
}

// Value prints a value of the command.
func Value(w io.Writer, f Format, v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	return write(w, f, bytes.TrimSpace(b.Bytes()), "  ")
}

// encode is the message without the spaces that protojson varies.
func encode(m proto.Message) ([]byte, error) {
	data, err := protojson.MarshalOptions{EmitDefaultValues: true}.Marshal(m)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = json.Compact(&b, data)
	return b.Bytes(), err
}

func write(w io.Writer, f Format, data []byte, indent string) error {
	if f == YAML {
		return writeYAML(w, data)
	}
	var b bytes.Buffer
	b.Write(data)
	if indent != "" {
		b.Reset()
		if err := json.Indent(&b, data, "", indent); err != nil {
			return err
		}
	}
	b.WriteByte('\n')
	_, err := w.Write(b.Bytes())
	return err
}

// writeYAML prints JSON, which is YAML, in the style of YAML and in the same order.
func writeYAML(w io.Writer, data []byte) error {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return err
	}
	restyle(&doc)
	e := yaml.NewEncoder(w)
	e.SetIndent(2)
	if err := e.Encode(&doc); err != nil {
		return err
	}
	return e.Close()
}

// restyle takes the braces and the quotes away that YAML does not need. What was a string stays one by its tag.
func restyle(n *yaml.Node) {
	if len(n.Content) > 0 || n.Kind == yaml.ScalarNode {
		n.Style = 0
	}
	for _, child := range n.Content {
		restyle(child)
	}
}
