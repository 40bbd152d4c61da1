package dynamo

import (
	"cmp"
	"slices"

	"github.com/remuda-ci/remuda/internal/store/token"
)

// place is where a row stands in a listing: by the index's sort attribute, then
// by its own key, which orders rows whose times are equal. DynamoDB says
// nothing of their order.
type place struct{ sort, key string }

func (p place) compare(o place) int {
	return cmp.Or(cmp.Compare(p.sort, o.sort), cmp.Compare(p.key, o.key))
}

// entry is a row as an index of keys has it.
type entry struct {
	place
	row item // the key of the row in its table
}

// listing is an order of rows by one of the indexes.
type listing struct {
	name  string // bound into page tokens
	table schema
	index indexSchema
}

var (
	instancesByRun  = listingBy("instances by run", instances, byRun)
	instancesByPool = listingBy("instances by pool", instances, byPool)
	instancesByDue  = listingBy("instances by due", instances, byDue)
	instancesByHost = listingBy("instances", instances, byHost)
	requestsByDue   = listingBy("requests by due", requests, byDue)
	jobsByRun       = listingBy("open jobs of a run", jobs, byRun)
	jobsByPool      = listingBy("jobs by pool", jobs, byPool)
	jobsByDue       = listingBy("jobs by due", jobs, byDue)
	webhooksByDue   = listingBy("webhooks by due", jobs, byDue)
	workByAge       = listingBy("waiting jobs of service", jobs, byPool)
	workByState     = listingBy("jobs of service", jobs, byPool)
	workByDue       = listingBy("jobs of services by due", jobs, byDue)
	workersByID     = listingBy("workers", jobs, byRun)
)

func listingBy(name, table, index string) listing {
	t := schemas[slices.IndexFunc(schemas, func(t schema) bool { return t.name == table })]
	return listing{name, t, t.indexes[slices.IndexFunc(t.indexes, func(x indexSchema) bool { return x.name == index })]}
}

// entryOf is the entry of an index's item.
func (l listing) entryOf(it item) entry {
	e := entry{place{textOf(it, l.index.sort), l.keyOf(it)}, item{l.table.hash: it[l.table.hash]}}
	if l.table.sort != "" {
		e.row[l.table.sort] = it[l.table.sort]
	}
	return e
}

// keyOf is an item's key in its table, as one text that sorts.
func (l listing) keyOf(it item) string {
	if l.table.sort == "" {
		return textOf(it, l.table.hash)
	}
	return textOf(it, l.table.hash) + " " + textOf(it, l.table.sort)
}

// unique: no two rows of a partition have the same place by the index alone.
func (l listing) unique() bool { return l.index.sort == l.table.hash }

func (l listing) token(p place) string { return token.New(l.name, p.sort, p.key) }

// after is the place behind which a page begins; none for a first page.
func (l listing) after(pageToken string) (place, error) {
	parts, err := token.Parse(l.name, pageToken, 2)
	if err != nil || parts == nil {
		return place{}, err
	}
	if parts[0] == "" {
		return place{}, token.Bad(l.name)
	}
	return place{parts[0], parts[1]}, nil
}
