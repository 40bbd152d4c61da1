package policy

import (
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// fields are those of an object, by their names.
type fields struct {
	of     *node
	names  []string
	values []span
}

// span is where a value begins and ends; both are 0 where it is absent.
type span struct{ begin, end int }

func (f fields) get(name string) node {
	at := f.values[slices.Index(f.names, name)]
	return node{in: f.of, name: name, index: inObject, begin: at.begin, end: at.end}
}

// fields reads an object that has only the named fields. A field that comes twice is
// an error, since a reader could not say which of the two counts.
func (r *snapshotReader) fields(n node, names []string) fields {
	f := fields{&n, names, make([]span, len(names))}
	switch kind := r.kind(n); {
	case kind == kindNull && n.in != nil:
		return f
	case kind != kindObject:
		r.wrongType(n, kindObject)
		return f
	}
	for name, value := range r.members(f.of) {
		at := slices.IndexFunc(names, func(known string) bool { return r.is(name, known) })
		switch {
		case at < 0:
			value.name = r.document.text(name)
			r.problem(value, "means nothing here; there are %s", strings.Join(names, ", "))
		case f.values[at].end > 0:
			r.problem(node{begin: name.end}, "%s is given twice; remove one", join(n.path(), names[at]))
		default:
			f.values[at] = span{value.begin, value.end}
		}
		if r.more {
			break
		}
	}
	return f
}

func (r *snapshotReader) absent(n node) bool { return r.kind(n) == kindNull }

// isA reports whether a value is of a kind; one that is absent is of none.
func (r *snapshotReader) isA(n node, kind, want string) bool {
	is := r.kind(n)
	if is != kind && is != kindNull {
		r.wrongType(n, want)
	}
	return is == kind
}

func (r *snapshotReader) wrongType(n node, want string) {
	r.problem(n, "is %s; write %s", r.kind(n), want)
}

// list are the items of a list, as long as there is room for what is wrong with them.
func (r *snapshotReader) list(n *node) iter.Seq[node] {
	return func(yield func(node) bool) {
		if !r.isA(*n, kindList, kindList) {
			return
		}
		for item := range r.items(n) {
			if r.more || !yield(item) {
				return
			}
		}
	}
}

func (r *snapshotReader) text(n node) string {
	if !r.isA(n, kindText, kindText) {
		return ""
	}
	return r.document.text(n)
}

// word checks a text that is one of a few; "" is one that is not known.
func (r *snapshotReader) word(n node, text string, words []string) {
	if text != "" && !slices.Contains(words, text) {
		r.problem(n, "%.80q is none of %s", text, strings.Join(words, ", "))
	}
}

func (r *snapshotReader) required(n node) string {
	text := r.text(n)
	if kind := r.kind(n); kind == kindNull || kind == kindText && text == "" {
		r.missing(n)
	}
	return text
}

// missing says that a field is. Of what is no object at all, that was said.
func (r *snapshotReader) missing(n node) {
	if in := r.kind(*n.in); in == kindObject || in == kindNull && n.in.in != nil {
		r.problem(n, "is missing")
	}
}

func (r *snapshotReader) yes(n node, absent bool) bool {
	if r.absent(n) {
		return absent
	}
	return r.isA(n, kindBoolean, "true or false") && r.document[n.begin] == 't'
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

// readTime reads a time that can be written again: in UTC, its year has four digits.
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
	if !r.isA(n, kindNumber, kindNumber) {
		return 0
	}
	number := string(r.bytes(n))
	i, err := strconv.ParseInt(number, 10, 64)
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

// runnerID reads an id that is written as a text, as in the tag in which it is kept, or as a number.
func (r *snapshotReader) runnerID(n node) int64 {
	if r.kind(n) != kindText {
		return r.whole(n, 1)
	}
	text := r.text(n)
	if text == "" {
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
	if !r.isA(n, kindNumber, kindNumber) {
		return 0
	}
	number := r.bytes(n)
	f, err := strconv.ParseFloat(string(number), 64)
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
