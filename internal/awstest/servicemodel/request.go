package servicemodel

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
)

// Request is what came over the wire.
type Request struct {
	// Service is the one that the signature names, Operation what is asked of it.
	Service, Operation string
	// Target is the X-Amz-Target header of a JSON protocol.
	Target string
	Body   []byte
}

// Illegal is a rule that a request breaks.
type Illegal struct {
	Service, Operation string
	// Path leads to what breaks the rule, such as TagSpecifications[0].Tags[1].Key; empty for the request itself.
	Path string
	Rule string
}

func (i Illegal) String() string {
	if i.Path == "" {
		return fmt.Sprintf("%s %s: %s", i.Service, i.Operation, i.Rule)
	}
	return fmt.Sprintf("%s %s: %s %s", i.Service, i.Operation, i.Path, i.Rule)
}

// Check says what is illegal in a request. The error is that of a model which could not be read.
func (m *Models) Check(r Request) ([]Illegal, error) {
	s, err := m.service(r.Service)
	if err != nil {
		return nil, err
	}
	c := &checker{service: s, request: r}
	operation, ok := s.Operations[r.Operation]
	if !ok {
		c.breaks("", "is no operation of this service")
		return c.illegal, nil
	}
	input, ok := c.decode(operation.Input.Shape)
	if !ok {
		return c.illegal, nil
	}
	if shape := s.Shapes[operation.Input.Shape]; shape != nil {
		c.check("", shape, input)
	} else if len(input) > 0 {
		c.breaks("", "has members, though the operation has none")
	}
	if r.Service == "ec2" {
		c.checkEC2(input)
	}
	return c.illegal, nil
}

// checker collects what is illegal in one request.
type checker struct {
	service *service
	request Request
	illegal []Illegal
}

func (c *checker) breaks(path, rule string, args ...any) {
	c.illegal = append(c.illegal, Illegal{Service: c.request.Service, Operation: c.request.Operation, Path: path, Rule: fmt.Sprintf(rule, args...)})
}

// decode reads the body: structures and maps become a map[string]any by the wire's names, lists a []any, and scalars what JSON makes of them,
// or text in a form. It reports false if it has said that the body as a whole is illegal.
func (c *checker) decode(input string) (map[string]any, bool) {
	if c.service.Metadata.Protocol == "json" {
		return c.decodeJSON()
	}
	form, err := url.ParseQuery(string(c.request.Body))
	if err != nil {
		c.breaks("", "is no form: %v", err)
		return nil, false
	}
	if version := form.Get("Version"); version != c.service.Metadata.APIVersion {
		c.breaks("Version", "is %q, want %q", version, c.service.Metadata.APIVersion)
	}
	root := &node{}
	for name, values := range form {
		if name == "Action" || name == "Version" {
			continue
		}
		if len(values) > 1 {
			c.breaks(name, "is given %d times", len(values))
		}
		root.put(name, values[0])
	}
	value, _ := c.value("", c.service.Shapes[input], false, root).(map[string]any)
	return value, true
}

func (c *checker) decodeJSON() (map[string]any, bool) {
	if want := c.service.Metadata.TargetPrefix + "." + c.request.Operation; c.request.Target != want {
		c.breaks("X-Amz-Target", "is %q, want %q", c.request.Target, want)
	}
	d := json.NewDecoder(bytes.NewReader(c.request.Body))
	d.UseNumber()
	var value map[string]any
	if err := d.Decode(&value); err != nil {
		c.breaks("", "is no JSON object: %v", err)
		return nil, false
	}
	if _, err := d.Token(); err != io.EOF {
		c.breaks("", "has something after its JSON object")
	}
	return value, true
}
