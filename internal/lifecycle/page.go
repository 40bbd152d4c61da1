package lifecycle

import "iter"

// Page is one page of a listing.
type Page[T any] struct {
	Items []T
	// Next is the token of the page that follows; empty on the last one.
	Next string
}

// PageOf asks for a page: at most Limit items (0: the store's default of 100)
// after the token of the page before.
type PageOf struct {
	After string
	Limit int
}

// DefaultPageSize is the limit of a PageOf without one.
const DefaultPageSize = 100

// Size is the limit with its default filled in.
func (p PageOf) Size() int {
	if p.Limit <= 0 {
		return DefaultPageSize
	}
	return p.Limit
}

// Filter narrows the operator's listing of instances. An empty field matches everything.
type Filter struct {
	States        []State
	RunID         string
	ResourceClass string
}

// Pages yields the items of a listing from page on, to the end of its last page. If list fails, the error is yielded
// last, with no item.
func Pages[T any](page PageOf, list func(PageOf) (Page[T], error)) iter.Seq2[T, error] {
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
