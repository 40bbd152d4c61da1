package sim_test

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/remuda-ci/remuda/internal/sim/explore"
)

// bug is a planted bug: where it must be caught, and what it changes.
type bug struct {
	name     string
	searches []search
	edits    []edit
}

// search is where a bug must be caught: in simulated lives, or in explored states.
type search struct {
	caughtBy []string // the rules that may catch it
	how      []string // how the program looks for a broken rule
	first    []string // how it looks at first, where the bug was caught last; nil: as always
}

// edit is one change of a planted bug, inside the body of one function. It names the
// function and a statement or expression in it, so that it does not matter in which file
// or package they are, how they are laid out and what is around them.
type edit struct {
	fn     string // the function: see source.function
	what   string // the statement or expression: see source.find
	nth    int    // which one of several equal ones counts, from 1; 0: there is only one
	action string // delete, replace by, insert before or insert after
	text   string
}

// bugKey is a key at the begin of a line of a .bug file: its value is the rest of the line
// and all lines up to the next key. Lines of code are indented.
var bugKey = regexp.MustCompile(`(?m)^(caught by|explored to|first in life|first in bounds|func|find|find #\d+|delete|replace by|insert before|insert after):`)

// readBug reads a .bug file:
//
//	# what the bug is, in a sentence
//	caught by: the rules that may catch it in a simulated life, with commas between them
//	explored to: (instead or as well) the rules that may catch it in the explored states
//	first in life: the seed of the first life in which it is caught. It saves time only: if
//		it is caught there no more, all lives are looked at, and the test says what to write.
//	first in bounds: (for explored states) the name of the first bounds
//	func: decider.running
//	find: case v.busy(): ...
//	insert before:
//		case v.silent():
//			return terminate("silent while running")
//
// The last three lines may come several times, with another action each. One func
// stands for all edits up to the next. "find #2" takes the second of several equal ones.
func readBug(t *testing.T, file string) bug {
	t.Helper()
	b, err := parseBug(strings.TrimSuffix(filepath.Base(file), ".bug"), read(t, file))
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return b
}

func parseBug(name, text string) (bug, error) {
	b, next := bug{name: name}, edit{}
	keys := bugKey.FindAllStringSubmatchIndex(text, -1)
	for i, at := range keys {
		end := len(text)
		if i+1 < len(keys) {
			end = keys[i+1][0]
		}
		key, value := text[at[2]:at[3]], strings.TrimSpace(text[at[1]:end])
		name, nth, _ := strings.Cut(key, " #")
		switch name {
		case "caught by":
			b.searches = append(b.searches, search{caughtBy: strings.Split(value, ", "), how: simulated})
		case "explored to":
			b.searches = append(b.searches, search{caughtBy: strings.Split(value, ", "), how: explored})
		case "first in life":
			if seed, err := strconv.Atoi(value); err != nil || seed < 1 || seed > namedSeeds {
				return b, fmt.Errorf("no life %q among the first %d", value, namedSeeds)
			}
			if err := b.firstLook(simulated, "-seed", value, "-keep", keptEvents); err != nil {
				return b, err
			}
		case "first in bounds":
			if !slices.ContainsFunc(explore.Small, func(s explore.Bounds) bool { return s.Name == value }) {
				return b, fmt.Errorf("no small bounds %q", value)
			}
			if err := b.firstLook(explored, "-explore", value); err != nil {
				return b, err
			}
		case "func":
			next = edit{fn: value}
		case "find":
			next.what = value
			next.nth, _ = strconv.Atoi(cmp.Or(nth, "0"))
		default:
			if next.fn == "" || next.what == "" || (value == "") != (name == "delete") {
				return b, fmt.Errorf("%q needs a func, a find and, unless it deletes, a text", key)
			}
			next.action, next.text = name, value
			b.edits = append(b.edits, next)
			next = edit{fn: next.fn}
		}
	}
	if len(b.searches) == 0 || len(b.edits) == 0 || next.what != "" {
		return b, fmt.Errorf("no rule, no edit, or a find without an edit")
	}
	return b, nil
}

// firstLook has the search that was read last look in one place at first.
func (b *bug) firstLook(how []string, first ...string) error {
	if last := len(b.searches) - 1; last >= 0 && slices.Equal(b.searches[last].how, how) {
		b.searches[last].first = first
		return nil
	}
	return fmt.Errorf("%q does not follow the rules that catch the bug there", first)
}
