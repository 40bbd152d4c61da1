package policy

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// fields are those of an object, with what its place is if one is not there.
type fields struct {
	of     node
	fields map[string]node
}

func (f fields) get(name string) node {
	if n, ok := f.fields[name]; ok {
		return n
	}
	return node{path: join(f.of.path, name), offset: f.of.offset}
}

func (n node) absent() bool { return n.value == nil }

// fields reads an object that has no others than the named fields.
func (r *snapshotReader) fields(n node, names ...string) fields {
	o, ok := n.value.(object)
	if !ok && !n.absent() || n.absent() && n.path == "" {
		r.wrongType(n, "an object")
	}
	for _, key := range o.keys {
		if !slices.Contains(names, key) {
			r.problem(o.fields[key], "means nothing here; there are %s", strings.Join(names, ", "))
		}
	}
	return fields{n, o.fields}
}

func (r *snapshotReader) wrongType(n node, want string) {
	is := "null"
	switch n.value.(type) {
	case bool:
		is = "a boolean"
	case string:
		is = "a text"
	case json.Number:
		is = "a number"
	case []node:
		is = "a list"
	case object:
		is = "an object"
	}
	r.problem(n, "is %s; write %s", is, want)
}

func (r *snapshotReader) list(n node) []node {
	list, ok := n.value.([]node)
	if !ok && !n.absent() {
		r.wrongType(n, "a list")
	}
	return list
}

func (r *snapshotReader) text(n node) string {
	text, ok := n.value.(string)
	if !ok && !n.absent() {
		r.wrongType(n, "a text")
	}
	return text
}

func (r *snapshotReader) required(n node) string {
	text := r.text(n)
	if _, ok := n.value.(string); n.absent() || ok && text == "" {
		r.problem(n, "is missing")
	}
	return text
}

func (r *snapshotReader) yes(n node, absent bool) bool {
	if n.absent() {
		return absent
	}
	yes, ok := n.value.(bool)
	if !ok {
		r.wrongType(n, "true or false")
	}
	return yes
}

// time reads a time; "" is one that is not known.
func (r *snapshotReader) time(n node) time.Time {
	text := r.text(n)
	if text == "" {
		return time.Time{}
	}
	t, ok := readTime(text)
	if !ok {
		r.problem(n, "%.80q is no time; write it as 2026-01-01T12:00:00Z", text)
	}
	return t
}

// readTime reads a time that can be written again: in UTC, its year has four
// digits.
func readTime(text string) (time.Time, bool) {
	t, err := time.Parse(time.RFC3339, text)
	t = t.UTC()
	if err != nil || t.IsZero() || t.Year() < 1 || t.Year() > 9999 {
		return time.Time{}, false
	}
	return t, true
}

// whole reads a whole number.
func (r *snapshotReader) whole(n node, least int64) int64 {
	if n.absent() {
		return 0
	}
	number, ok := n.value.(json.Number)
	if !ok {
		r.wrongType(n, "a number")
		return 0
	}
	i, err := strconv.ParseInt(number.String(), 10, 64)
	switch {
	case err != nil:
		r.problem(n, "%.40s is no whole number, or too large a one", number)
		return 0
	case i < 0:
		r.problem(n, "%d is negative", i)
	case i < least:
		r.problem(n, "%d is less than %d", i, least)
	}
	return i
}

// runnerID reads an id that is written as a text, as in the tag in which it is
// kept, or as a number.
func (r *snapshotReader) runnerID(n node) int64 {
	text, ok := n.value.(string)
	switch {
	case !ok:
		return r.whole(n, 1)
	case text == "":
		return 0
	}
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 1 {
		r.problem(n, "%.40q is no id of a runner; write its number, or \"\" if it has none", text)
	}
	return id
}

// longest is more than any duration means, and small enough to reckon with.
const longest = 100 * 365 * 24 * time.Hour

// duration reads a number of units, which need not be whole.
func (r *snapshotReader) duration(n node, unit time.Duration) time.Duration {
	if n.absent() {
		return 0
	}
	number, ok := n.value.(json.Number)
	if !ok {
		r.wrongType(n, "a number")
		return 0
	}
	f, err := number.Float64()
	switch {
	case err != nil || f > float64(longest/unit):
		r.problem(n, "%.40s is more than %d", number, longest/unit)
	case f < 0:
		r.problem(n, "%.40s is negative", number)
	default:
		return time.Duration(math.Round(f * float64(unit)))
	}
	return 0
}
