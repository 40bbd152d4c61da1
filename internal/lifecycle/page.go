package lifecycle

import "time"

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
	Pool          string
	// Repository is "owner/name", or "owner" for all of that owner's, in any case: what the host serves or served last.
	Repository string
	// HeldAt is a time at which the host is held; zero: it need not be.
	HeldAt time.Time
	// Retiring hosts leave when they are next idle.
	Retiring bool
}

// Passes reports whether a record passes what no database has a column for: the filter's Repository, HeldAt and Retiring.
func (f Filter) Passes(r Record) bool {
	want := Canonical(f.Repository)
	switch {
	case !f.HeldAt.IsZero() && !r.Held(f.HeldAt), f.Retiring && !r.Retiring:
		return false
	}
	return want == "" || r.Repository == want || r.Repository != "" && Owner(r.Repository) == want
}
