// Package listing reads listings that come in pages.
package listing

import (
	"iter"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// All yields the items of a listing from page on, to the end of its last page. If list fails, the error is yielded
// last, with no item.
func All[T any](page lifecycle.PageOf, list func(lifecycle.PageOf) (lifecycle.Page[T], error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for {
			got, err := list(page)
			if err != nil {
				yield(*new(T), err)
				return
			}
			for _, item := range got.Items {
				if !yield(item, nil) {
					return
				}
			}
			if page.After = got.Next; page.After == "" {
				return
			}
		}
	}
}
