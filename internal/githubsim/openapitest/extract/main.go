// Command extract takes out of what GitHub publishes the little that the tests hold the stand-in against: of its OpenAPI
// description the operations that the project uses, and of its example deliveries those of workflow_job and workflow_run.
// scripts/openapi runs it. The same input gives the same output, byte for byte.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	var from source
	var out string
	flag.StringVar(&from.file, "description", "", "the OpenAPI description, a `FILE`; without it nothing is taken of it")
	flag.StringVar(&from.examples, "examples", "", "the example deliveries, a `FILE`; without it none is taken")
	flag.StringVar(&from.name, "source", "", "the package and version that the file is from, as `NAME@VERSION`")
	flag.StringVar(&out, "out", "", "where it goes: a `FILE` for the description, a directory for deliveries")
	flag.Parse()
	if err := from.extract(out); err != nil {
		fmt.Fprintln(os.Stderr, "extract:", err)
		os.Exit(1)
	}
}

// source is one file of a published package.
type source struct{ file, examples, name string }

func (s source) extract(out string) error {
	if s.name == "" || out == "" {
		return fmt.Errorf("-source and -out are required")
	}
	switch {
	case s.file != "":
		return extractDescription(s.file, s.name, out)
	case s.examples != "":
		return extractDeliveries(s.examples, s.name, out)
	}
	return fmt.Errorf("-description or -examples is required")
}

// read decodes a JSON file. Numbers stay as they are written: ids are beyond what a float64 holds exactly.
func read(path string, into any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("decode %s: %w", path, err)
	}
	return nil
}

// write makes the file of v, indented, its keys in order.
func write(path string, v any) error {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("encode %s: %w", path, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, text.Bytes(), 0o644)
}
