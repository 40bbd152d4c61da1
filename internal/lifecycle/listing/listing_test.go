package listing_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/listing"
)

// pages lists numbers, two on each page, and fails at the page after one.
func pages(failsAfter string, read *int) func(lifecycle.PageOf) (lifecycle.Page[int], error) {
	return func(p lifecycle.PageOf) (lifecycle.Page[int], error) {
		*read++
		if p.After == failsAfter {
			return lifecycle.Page[int]{}, errors.New("it is away")
		}
		return map[string]lifecycle.Page[int]{
			"":  {Items: []int{1, 2}, Next: "b"},
			"b": {Items: []int{3, 4}, Next: "c"},
			"c": {Items: []int{5}},
		}[p.After], nil
	}
}

func TestAll(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		page  lifecycle.PageOf
		fails string
		stop  int // after how many items the reader stops; 0: never
		want  []int
		read  int
		wrong bool
	}{
		"all of them":        {fails: "never", want: []int{1, 2, 3, 4, 5}, read: 3},
		"from a page on":     {page: lifecycle.PageOf{After: "b"}, fails: "never", want: []int{3, 4, 5}, read: 2},
		"until one is found": {fails: "never", stop: 3, want: []int{1, 2, 3}, read: 2},
		"until it fails":     {fails: "c", want: []int{1, 2, 3, 4, 0}, read: 3, wrong: true},
	} {
		var got []int
		var failed error
		read := 0
		for item, err := range listing.All(tt.page, pages(tt.fails, &read)) {
			if got, failed = append(got, item), err; len(got) == tt.stop {
				break
			}
		}
		if !slices.Equal(got, tt.want) || read != tt.read || (failed != nil) != tt.wrong {
			t.Errorf("%s: %v of %d pages, %v; want %v of %d", name, got, read, failed, tt.want, tt.read)
		}
	}
}
