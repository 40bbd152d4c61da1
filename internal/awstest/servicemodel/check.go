package servicemodel

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// check holds a value against its shape.
func (c *checker) check(path string, s *shape, value any) {
	c.service.prepare(s)
	switch s.Type {
	case "structure":
		c.checkStructure(path, s, value)
	case "list":
		list, ok := value.([]any)
		if !ok {
			c.breaks(path, "is %s, want a list", kind(value))
			return
		}
		c.checkRange(path, s, float64(len(list)), "items")
		for i, item := range list {
			c.check(fmt.Sprintf("%s[%d]", path, i), c.service.Shapes[s.Member.Shape], item)
		}
	case "map":
		c.checkMap(path, s, value)
	case "string":
		c.checkString(path, s, value)
	case "blob":
		text, ok := value.(string)
		content, err := base64.StdEncoding.DecodeString(text)
		if !ok || err != nil {
			c.breaks(path, "is no base64")
			return
		}
		c.checkRange(path, s, float64(len(content)), "bytes")
	case "boolean":
		if _, ok := value.(bool); !ok && !(c.inForm() && (value == "true" || value == "false")) {
			c.breaks(path, "is %s, want a boolean", kind(value))
		}
	case "integer", "long", "float", "double":
		c.checkNumber(path, s, value)
	case "timestamp":
		c.checkTime(path, value)
	default:
		c.breaks(path, "is of the type %q, which this check does not know", s.Type)
	}
}

// inForm reports whether scalars are text.
func (c *checker) inForm() bool { return c.service.Metadata.Protocol != "json" }

func (c *checker) checkStructure(path string, s *shape, value any) {
	given, ok := value.(map[string]any)
	if !ok {
		c.breaks(path, "is %s, want a structure", kind(value))
		return
	}
	for _, name := range s.required {
		if given[name] == nil { // null is the same as absent
			c.breaks(join(path, name), "is missing, and required")
		}
	}
	set := 0
	for _, name := range slices.Sorted(maps.Keys(given)) {
		m, ok := s.named[name]
		switch {
		case !ok:
			c.breaks(join(path, name), "is no member of the model")
		case given[name] != nil:
			set++
			c.check(join(path, name), c.service.Shapes[m.Shape], given[name])
		}
	}
	if s.Union && set != 1 {
		c.breaks(path, "has %d members, want just one of a union", set)
	}
}

func (c *checker) checkMap(path string, s *shape, value any) {
	given, ok := value.(map[string]any)
	if !ok {
		c.breaks(path, "is %s, want a map", kind(value))
		return
	}
	c.checkRange(path, s, float64(len(given)), "entries")
	for _, key := range slices.Sorted(maps.Keys(given)) {
		at := fmt.Sprintf("%s[%q]", path, key)
		c.check(at+" (the key)", c.service.Shapes[s.Key.Shape], key)
		if given[key] == nil {
			c.breaks(at, "is null")
			continue
		}
		c.check(at, c.service.Shapes[s.Value.Shape], given[key])
	}
}

func (c *checker) checkString(path string, s *shape, value any) {
	text, ok := value.(string)
	if !ok {
		c.breaks(path, "is %s, want a string", kind(value))
		return
	}
	c.checkRange(path, s, float64(utf8.RuneCountInString(text)), "characters")
	if len(s.Enum) > 0 && !slices.Contains(s.Enum, text) {
		c.breaks(path, "is %q, want one of %s", text, shorten(s.Enum))
	}
	if !s.matches(text) {
		c.breaks(path, "is %q, want what matches %s", text, s.Pattern)
	}
}

func (c *checker) checkNumber(path string, s *shape, value any) {
	text, ok := "", false
	if number, isNumber := value.(json.Number); isNumber {
		text, ok = number.String(), true
	} else if c.inForm() {
		text, ok = value.(string)
	}
	number, err := strconv.ParseFloat(text, 64)
	if !ok || err != nil {
		c.breaks(path, "is %s, want a number", kind(value))
		return
	}
	whole := s.Type == "integer" || s.Type == "long"
	switch {
	case whole && number != math.Trunc(number):
		c.breaks(path, "is %s, want a whole number", text)
	case s.Type == "integer" && (number < math.MinInt32 || number > math.MaxInt32):
		c.breaks(path, "is %s, want a number of 32 bits", text)
	}
	c.checkRange(path, s, number, "")
}

// checkTime takes what the SDK sends: seconds in JSON, RFC 3339 in a form.
func (c *checker) checkTime(path string, value any) {
	text, _ := value.(string)
	_, err := time.Parse(time.RFC3339, text)
	if _, isNumber := value.(json.Number); isNumber != c.inForm() && (isNumber || err == nil) {
		return
	}
	c.breaks(path, "is %s, want a time", kind(value))
}

// checkRange holds a number, or how many there are of something, against the minimum and the maximum of a shape.
func (c *checker) checkRange(path string, s *shape, n float64, of string) {
	if s.Min != nil && n < *s.Min {
		c.breaks(path, "%s, want at least %v", amount(n, of), *s.Min)
	}
	if s.Max != nil && n > *s.Max {
		c.breaks(path, "%s, want at most %v", amount(n, of), *s.Max)
	}
}

func amount(n float64, of string) string {
	if of == "" {
		return "is " + strconv.FormatFloat(n, 'f', -1, 64)
	}
	return "has " + strconv.FormatFloat(n, 'f', -1, 64) + " " + of
}

func kind(value any) string {
	switch value := value.(type) {
	case map[string]any:
		return "a structure"
	case []any:
		return "a list"
	case string:
		return strconv.Quote(value)
	default:
		return fmt.Sprint(value)
	}
}

// shorten is an enumeration in a sentence: some have a thousand values.
func shorten(values []string) string {
	const most = 8
	if len(values) > most {
		return strings.Join(values[:most], ", ") + fmt.Sprintf(" and %d more", len(values)-most)
	}
	return strings.Join(values, ", ")
}
