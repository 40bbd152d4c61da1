package strictyaml

import (
	"fmt"
	"regexp"
	"strconv"
)

// Validator is a configuration with rules beyond the types of its keys.
type Validator interface {
	// Validate reports every broken rule at the place of the key that breaks it.
	Validate(root Place)
}

// Check runs the rules of a configuration that was not read from a file, or
// was changed since, by flags for instance. Its problems have no line.
func Check(name string, v Validator) error {
	ps := newProblems()
	v.Validate(Place{problems: ps})
	return ps.err(name)
}

// Place is where a key stands in a file, whether or not the file has it.
type Place struct {
	problems  *problems
	positions map[string]position
	path      string
	// above is the position of the nearest key above that the file has.
	above position
	// spoiled is set when the value here or above could not be read: the rules would
	// complain about a default that is not in the file.
	spoiled bool
}

type position struct{ line, column int }

// At goes down by the keys of mappings.
func (p Place) At(keys ...string) Place {
	for _, k := range keys {
		p = p.down(joinKey(p.path, k))
	}
	return p
}

// Item goes down to an item of a list, the first one being 0.
func (p Place) Item(i int) Place { return p.down(joinIndex(p.path, i)) }

func (p Place) down(path string) Place {
	p.above = p.position()
	p.spoiled = p.spoiled || p.problems.bad[p.path]
	p.path = path
	return p
}

// position is the place's own, or that of the nearest key above it.
func (p Place) position() position {
	if pos, ok := p.positions[p.path]; ok {
		return pos
	}
	return p.above
}

// Written reports whether the file has the key, whatever its value.
func (p Place) Written() bool {
	_, ok := p.positions[p.path]
	return ok
}

// Errorf reports that the value at the place breaks a rule. The text says what
// is wrong and what to write instead. A value has one problem at most: the
// first rule that it breaks, and none if it could not even be read.
func (p Place) Errorf(format string, args ...any) {
	if p.spoiled || p.problems.bad[p.path] || p.problems.broken[p.path] {
		return
	}
	p.problems.broken[p.path] = true
	p.problems.add(p.path, p.position(), func() string { return fmt.Sprintf(format, args...) })
}

var plainKey = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

func joinKey(path, key string) string {
	switch {
	case !plainKey.MatchString(key):
		return path + "[" + quote(key) + "]"
	case path == "":
		return key
	}
	return path + "." + key
}

func joinIndex(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// quote shows a piece of the file, however strange or long, on one line.
func quote(s string) string {
	const most = 60
	if len(s) > most {
		return strconv.Quote(s[:most]) + "…"
	}
	return strconv.Quote(s)
}
