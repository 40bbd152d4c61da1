package storetest

import (
	"encoding/base64"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store/token"
)

// pageTests are those of each listing, every one with a database of its own. The listings read
// in the same few ways, and each case writes a hundred rows: some are enough under the race detector.
var pageTests = slices.Concat(
	perListing("every limit gives every item once", testPageLimits),
	perListing("rows that come and go do not move the others", testPageStability),
	perListing("a token that no listing gave is an error", testPageTokens),
)

var _ = add(group{name: "pages", underRace: 5, tests: pageTests})

func perListing(name string, run func(t *testing.T, w world, l listing)) []suiteTest {
	var tests []suiteTest
	for _, l := range listings {
		tests = append(tests, suiteTest{l.name + ": " + name, func(t *testing.T, w world) { run(t, w, l) }})
	}
	return tests
}

// fill adds the rows from one up to another, with even numbers, so that others fit between, and returns their names in order.
func (l listing) fill(t *testing.T, w world, from, to int) []string {
	t.Helper()
	var names []string
	for n := from; n < to; n++ {
		names = append(names, l.add(t, w, 2*n))
	}
	return names
}

// through goes through the pages and calls between after each of them. Rows that
// come in any order are returned in that of their names.
func (l listing) through(t *testing.T, w world, limit int, between func(page int)) []string {
	t.Helper()
	pages := 0
	found := all(t, limit, func(of lifecycle.PageOf) (lifecycle.Page[string], error) {
		names, next, err := l.list(t.Context(), w.Store, of)
		if l.endless && err == nil && next == "" {
			t.Fatal("a page without a token to go on from")
		}
		if l.endless && len(names) == 0 {
			next = ""
		}
		pages++
		between(pages)
		return lifecycle.Page[string]{Items: names, Next: next}, err
	})
	if l.unordered {
		slices.Sort(found)
	}
	return found
}

func quietly(int) {}

func testPageLimits(t *testing.T, w world, l listing) {
	equal(t, "nothing", []string(nil), l.through(t, w, 3, quietly))
	// Small pages go through a few rows, since each page may cost a database as much as all rows at once.
	const few, rows = 25, lifecycle.DefaultPageSize + 1
	want := l.fill(t, w, 0, few)
	for _, limit := range []int{-1, 0, 1, 2, 7, few - 1, few, few + 1, math.MaxInt} {
		equal(t, fmt.Sprintf("%d of %d a page", limit, few), want, l.through(t, w, limit, quietly))
	}
	want = append(want, l.fill(t, w, few, rows)...)
	for _, limit := range []int{-1, 0, 37, rows - 1, rows, rows + 1, math.MaxInt} {
		equal(t, fmt.Sprintf("%d of %d a page", limit, rows), want, l.through(t, w, limit, quietly))
	}
	first, next, err := l.list(t.Context(), w.Store, lifecycle.PageOf{})
	if err != nil || len(first) > lifecycle.DefaultPageSize || next == "" {
		t.Errorf("first page: %d items, token %q and error %v, want at most %d, a token and none",
			len(first), next, err, lifecycle.DefaultPageSize)
	}
}

// testPageStability adds rows before, between and after, and takes some away,
// while it goes through the pages: what stayed put comes once and in order, if there is one.
func testPageStability(t *testing.T, w world, l listing) {
	const rows = 12
	stay := l.fill(t, w, 0, rows)
	got := l.through(t, w, 2, func(page int) {
		if page > rows {
			return
		}
		l.add(t, w, 2*rows-2*page+1)
		if l.drop != nil && page%3 == 0 {
			gone := stay[page-1]
			l.drop(t, w, gone)
			stay = slices.Delete(slices.Clone(stay), page-1, page)
		}
	})
	var kept []string
	seen := map[string]int{}
	for _, name := range got {
		if seen[name]++; seen[name] == 2 {
			t.Errorf("%s came twice", name)
		}
		if slices.Contains(stay, name) {
			kept = append(kept, name)
		}
	}
	equal(t, "rows that stayed", stay, kept)
}

func testPageTokens(t *testing.T, w world, l listing) {
	l.fill(t, w, 0, 3)
	_, next, err := l.list(t.Context(), w.Store, lifecycle.PageOf{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	tokens := map[string]string{
		"no base64":          "*",
		"no JSON":            base64.RawURLEncoding.EncodeToString([]byte("[")),
		"truncated":          next[:len(next)/2],
		"of another listing": token.New("elsewhere", "1"),
		"a sentence":         "page 2, please",
	}
	for name, bad := range tokens {
		_, _, err := l.list(t.Context(), w.Store, lifecycle.PageOf{After: bad})
		wantError(t, name, err, lifecycle.ErrPageToken)
	}
}
