package cache

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// MaxHeld is how many caches a report or a record names: those that were committed last.
const MaxHeld = 16

// Held is what a host has of one cache.
type Held struct {
	Key string
	// Bytes is what it takes on the host.
	Bytes int64
	// CommittedAt is when the view of a run last became the cache, to the second.
	CommittedAt time.Time
}

// List is what a host has of caches, in one text that can be compared and is short in a row: `KEY:BYTES:SECONDS` of each, in order of their keys, with
// commas between. Each key is there once. Empty: the host has none.
type List string

// maxList is the length of the longest List, in bytes.
const maxList = MaxHeld*(KeyLength+len(":9223372036854775807:253402300799,")) - 1

// ListOf is the list of at most MaxHeld caches, those that were committed last. What is no sound entry is left out.
func ListOf(held ...Held) List {
	newest := slices.SortedFunc(slices.Values(held), func(a, b Held) int {
		return cmp.Or(b.CommittedAt.Compare(a.CommittedAt), strings.Compare(a.Key, b.Key))
	})
	var entries []string
	seen := map[string]bool{}
	for _, h := range newest {
		text := h.text()
		if _, err := parse(text); err != nil || seen[h.Key] || len(entries) == MaxHeld {
			continue
		}
		seen[h.Key], entries = true, append(entries, text)
	}
	slices.Sort(entries)
	return List(strings.Join(entries, ","))
}

func (h Held) text() string {
	return fmt.Sprintf("%s:%d:%d", h.Key, h.Bytes, h.CommittedAt.Unix())
}

// Check returns what is wrong with a list that another wrote.
func (l List) Check() error {
	_, err := l.parse()
	return err
}

// Held are the caches of the list in order of their keys; none if the list is malformed.
func (l List) Held() []Held {
	held, _ := l.parse()
	return held
}

// Has reports whether the host has a cache, and since when in the form that it has.
func (l List) Has(key string) (Held, bool) {
	for _, h := range l.Held() {
		if h.Key == key {
			return h, true
		}
	}
	return Held{}, false
}

// Keys are the keys of the list.
func (l List) Keys() []string {
	var keys []string
	for _, h := range l.Held() {
		keys = append(keys, h.Key)
	}
	return keys
}

func (l List) parse() ([]Held, error) {
	if l == "" {
		return nil, nil
	}
	if len(l) > maxList {
		return nil, fmt.Errorf("is longer than %d bytes", maxList)
	}
	var held []Held
	for entry := range strings.SplitSeq(string(l), ",") {
		h, err := parse(entry)
		switch {
		case err != nil:
			return nil, err
		case len(held) == MaxHeld:
			return nil, fmt.Errorf("has more than %d entries", MaxHeld)
		case len(held) > 0 && held[len(held)-1].Key >= h.Key:
			return nil, errors.New("is not in order of its keys, or has one twice")
		}
		held = append(held, h)
	}
	return held, nil
}

// latest is the end of the year 9999, in seconds: JSON has no later time.
const latest = 253402300799

// Size is a number of bytes for people: in KiB below one MiB, rounded up so that little is not nothing, and in GiB from one on. What rounds to the
// next unit has it.
func Size(bytes int64) string {
	const kib, mib, gib = 1 << 10, 1 << 20, 1 << 30
	switch {
	case bytes <= mib-kib:
		return fmt.Sprintf("%d KiB", (bytes+kib-1)/kib)
	case bytes < gib-mib/2:
		return fmt.Sprintf("%d MiB", (bytes+mib/2)/mib)
	}
	return fmt.Sprintf("%.1f GiB", float64(bytes)/gib)
}

// errEntry repeats nothing of what an agent wrote.
var errEntry = errors.New("has an entry that is not KEY:BYTES:SECONDS with 16 hexadecimal digits and two numbers that are not negative")

func parse(entry string) (Held, error) {
	key, rest, _ := strings.Cut(entry, ":")
	bytes, seconds, _ := strings.Cut(rest, ":")
	n, err := strconv.ParseInt(bytes, 10, 64)
	at, atErr := strconv.ParseInt(seconds, 10, 64)
	h := Held{Key: key, Bytes: n, CommittedAt: time.Unix(at, 0).UTC()}
	if err != nil || atErr != nil || n < 0 || at < 0 || at > latest || !keyForm.MatchString(key) || h.text() != entry {
		return Held{}, errEntry
	}
	return h, nil
}
