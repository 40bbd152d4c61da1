package dynamo

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store"
	"github.com/remuda-ci/remuda/internal/store/token"
)

// place is where a row stands in a listing: by the index's sort attribute, then by its own key, which orders
// rows whose times are equal. DynamoDB says nothing of their order.
type place struct{ sort, key string }

func (p place) compare(o place) int {
	return cmp.Or(cmp.Compare(p.sort, o.sort), cmp.Compare(p.key, o.key))
}

// entry is a row as an index of keys has it.
type entry struct {
	place
	row item // the key of the row in its table
}

// listing is an index of a kind as one of the indexes of its table: see indexFor.
type listing struct {
	*store.Index
	table schema
	index indexSchema // without a name: the table itself
}

// listings are those of all kinds.
var listings = func() map[*store.Index]listing {
	all := map[*store.Index]listing{}
	for _, k := range store.Kinds {
		for _, x := range k.Indexes {
			all[x] = listing{x, schemaOf(k), indexFor(k, x)}
		}
	}
	return all
}()

// indexFor says which index of the table an index of a kind is: the one by due, the one by pool for another order of
// times, the one by host for all rows by key, the table itself where that has the partitions as its keys, and
// otherwise the one by run.
func indexFor(k *store.Kind, x *store.Index) indexSchema {
	t, name := schemaOf(k), byRun
	switch {
	case x.Order == store.Due:
		name = byDue
	case x.Order != "":
		name = byPool
	case len(x.By) == 0:
		name = byHost
	case t.sort != "" && slices.Equal(x.By, k.KeyColumns[:len(k.KeyColumns)-1]):
		return indexSchema{hash: t.hash, sort: t.sort}
	}
	return t.indexes[slices.IndexFunc(t.indexes, func(x indexSchema) bool { return x.name == name })]
}

// Shards is how many partitions an index over all rows has. One partition
// takes 1,000 writes a second; the rows of a fleet of 100,000 hosts are written
// about that often. Each one is a query of its own in every due sweep.
const Shards = 4

// everyShard is the partitions of an index over all rows.
var everyShard = func() (all []string) {
	for i := range Shards {
		all = append(all, strconv.Itoa(i))
	}
	return all
}()

// shard is the partition of a row, which never changes.
func shard(key string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key)) // never fails
	return everyShard[h.Sum32()%Shards]
}

// attributes are those that a row with a key needs for the listing; none if it is not in it.
func (l listing) attributes(row store.Row, key string) item {
	partition, in := l.Partition(row)
	if !in || l.index.name == "" {
		return nil
	}
	it := item{}
	switch l.index.name {
	case byDue:
		it[l.index.hash] = text(l.Prefix + shard(key))
	case byHost:
		r, _ := row.(*lifecycle.Record)
		it[l.index.hash] = text(hostPartition(r != nil && r.State == lifecycle.StateTerminated, shard(key)))
	default:
		it[l.index.hash] = text(l.partition(partition))
	}
	if l.index.sort == waitingKey {
		it[waitingKey] = text(timeText(l.At(row)) + " " + key)
	}
	return it
}

// partition is the name of a partition. That of idle hosts has the pool in it, so that the idle hosts of one pool
// hide none of another; it is not read back.
func (l listing) partition(values []string) string {
	if l.index.hash == poolKey {
		return strings.Join(values, " ")
	}
	return l.Prefix + strings.Join(values, "/")
}

// hostPartition keeps the hosts that have ended apart: there may be many times
// more of them than live ones, which are what is mostly asked for.
func hostPartition(ended bool, shard string) string {
	if ended {
		return "ended-" + shard
	}
	return "live-" + shard
}

// searchFor is the query as a search of an index's entries.
func searchFor(q store.Query) query {
	l := listings[q.Index]
	search := query{listing: l, newest: q.Newest}
	switch l.index.name {
	case byDue:
		for _, shard := range everyShard {
			search.partitions = append(search.partitions, l.Prefix+shard)
		}
		search.upTo = timeText(q.UpTo)
	case byHost:
		search.partitions = hostPartitions(q.Where)
	default:
		for _, values := range q.Partitions {
			if name := l.partition(values); name != "" { // which no row has
				search.partitions = append(search.partitions, name)
			}
		}
	}
	return search
}

// hostPartitions are those that may have hosts in one of the states asked for.
func hostPartitions(where []store.Match) []string {
	live, ended := true, true
	for _, m := range where {
		if m.Column == "state" {
			isEnded := func(state string) bool { return state == string(lifecycle.StateTerminated) }
			ended = slices.ContainsFunc(m.Texts, isEnded)
			live = slices.ContainsFunc(m.Texts, func(state string) bool { return !isEnded(state) })
		}
	}
	var found []string
	for _, shard := range everyShard {
		if live {
			found = append(found, hostPartition(false, shard))
		}
		if ended {
			found = append(found, hostPartition(true, shard))
		}
	}
	return found
}

// entryOf is the entry of an index's item.
func (l listing) entryOf(it item) entry {
	e := entry{place{textOf(it, l.index.sort), l.table.keyText(it)}, item{l.table.hash: it[l.table.hash]}}
	if l.table.sort != "" {
		e.row[l.table.sort] = it[l.table.sort]
	}
	return e
}

// unique: no two rows of a partition have the same place by the index alone.
func (l listing) unique() bool { return l.index.sort == l.table.hash }

func (l listing) token(p place) string { return token.New(l.Name, p.sort, p.key) }

// after is the place after which a page begins; the zero place for a first page.
func (l listing) after(pageToken string) (place, error) {
	parts, err := token.Parse(l.Name, pageToken, 2)
	if err != nil || parts == nil {
		return place{}, err
	}
	if parts[0] == "" {
		return place{}, token.Bad(l.Name)
	}
	return place{parts[0], parts[1]}, nil
}

// maxPage is how many rows a page has at most, whatever is asked for: a page is in memory as a whole.
const maxPage = 1000

func sizeOf(of lifecycle.PageOf) int { return min(of.Size(), maxPage) }

// listPage makes a page. One that has no row left is followed by the next, until there is a row or no more.
func (s *Store) listPage(ctx context.Context, q store.Query) ([]store.Row, string, error) {
	what, search := "list "+q.Index.Name, searchFor(q)
	after, err := search.listing.after(q.Page.After)
	if err != nil {
		return nil, "", err
	}
	size := sizeOf(q.Page)
	search.after, search.count = after, size+1
	for {
		found, err := s.entries(ctx, what, search)
		if err != nil {
			return nil, "", err
		}
		next := ""
		if search.newest {
			found = found[:min(len(found), size)]
		} else if len(found) > size {
			found = found[:size]
			search.after = found[size-1].place
			next = search.listing.token(search.after)
		}
		rows, err := s.rows(ctx, what, q, found)
		if err != nil || len(rows) > 0 || next == "" {
			return rows, next, err
		}
	}
}

// rows are the rows of entries, in their order. The index may lag: what is read decides whether the query asks for
// the row.
func (s *Store) rows(ctx context.Context, what string, q store.Query, entries []entry) ([]store.Row, error) {
	l := listings[q.Index]
	keys := make([]item, len(entries))
	for i, e := range entries {
		keys[i] = e.row
	}
	items, err := s.batchGet(ctx, what, l.table.name, keys, !q.Stale)
	if err != nil {
		return nil, err
	}
	byKey := make(map[string]item, len(items))
	for _, it := range items {
		byKey[l.table.keyText(it)] = it
	}
	var found []store.Row
	for _, e := range entries {
		it, ok := byKey[e.key]
		if !ok {
			continue
		}
		if row := s.sound(l.Kind(), it); row != nil && q.Matches(row) {
			found = append(found, row)
		}
	}
	return found, nil
}

// listTable lists rows of a partition of the table itself, consistently.
func (s *Store) listTable(ctx context.Context, q store.Query) ([]store.Row, error) {
	l, what := listings[q.Index], "list "+q.Index.Name
	input := &dynamodb.QueryInput{
		TableName: s.table(l.table.name), ConsistentRead: sdk.Bool(!q.Stale),
		KeyConditionExpression:    sdk.String("#hash = :hash"),
		ExpressionAttributeNames:  map[string]string{"#hash": l.table.hash},
		ExpressionAttributeValues: item{":hash": text(l.Kind().Dynamo.Prefix + l.partition(q.Partitions[0]))},
	}
	if q.From != "" {
		input.KeyConditionExpression = sdk.String("#hash = :hash AND #sort >= :from")
		input.ExpressionAttributeNames["#sort"] = l.table.sort
		input.ExpressionAttributeValues[":from"] = text(q.From)
	}
	pages := dynamodb.NewQueryPaginator(s.client, input)
	var found []store.Row
	for pages.HasMorePages() {
		out, err := pages.NextPage(ctx)
		if err != nil {
			return nil, s.failed(what, l.table.name, err)
		}
		for _, it := range out.Items {
			row, err := rowOf(l.Kind(), store.Key{}, it)
			switch {
			case err != nil && q.Strict:
				return nil, fmt.Errorf("%s: %s %s: %w", what, l.Kind().Name, textOf(it, l.table.sort), err)
			case err != nil:
				s.logDamaged(l.table.name, l.table.keyText(it), err)
			case !expired(l.Kind().Expires(row), s.now()):
				found = append(found, row)
			}
		}
	}
	return found, nil
}

// query asks for the first entries of some partitions of a listing.
type query struct {
	listing    listing
	partitions []string
	after      place  // behind which the entries begin
	upTo       string // the last value of the sort attribute; empty: no end
	count      int
	newest     bool // the order is turned round
}

// compare compares two places in the order of the query.
func (q query) compare(a, b place) int {
	if q.newest {
		return b.compare(a)
	}
	return a.compare(b)
}

// entries are the first entries, in order over all partitions. What is read
// grows with the count and the number of partitions, and with nothing else.
func (s *Store) entries(ctx context.Context, what string, q query) ([]entry, error) {
	if q.upTo != "" && q.after.sort > q.upTo {
		return nil, nil
	}
	found := make([][]entry, len(q.partitions))
	errs := make([]error, len(q.partitions))
	var wg sync.WaitGroup
	for i, partition := range q.partitions {
		wg.Go(func() { found[i], errs[i] = s.partition(ctx, what, q, partition) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	all := slices.Concat(found...)
	slices.SortFunc(all, func(a, b entry) int { return q.compare(a.place, b.place) })
	return all[:min(len(all), q.count)], nil
}

// partition are at least the first entries of one partition, if it has so many, and every one that has the
// time of the last of them: DynamoDB may give those in any order.
func (s *Store) partition(ctx context.Context, what string, q query, partition string) ([]entry, error) {
	input := q.input(s, partition)
	var found []entry
	for {
		out, err := s.client.Query(ctx, input)
		if err != nil {
			return nil, s.failed(what, q.listing.table.name, err)
		}
		for _, it := range out.Items {
			if e := q.listing.entryOf(it); q.after == (place{}) || e.compare(q.after) > 0 {
				found = append(found, e)
			}
		}
		if out.LastEvaluatedKey == nil || q.enough(found) {
			return found, nil
		}
		input.ExclusiveStartKey = out.LastEvaluatedKey
	}
}

// enough reports whether the entries of a partition, in its order, are those that the query needs of it.
func (q query) enough(found []entry) bool {
	if len(found) < q.count {
		return false
	}
	return q.listing.unique() || found[len(found)-1].sort != found[q.count-1].sort
}

func (q query) input(s *Store, partition string) *dynamodb.QueryInput {
	x := q.listing.index
	expression, names, values := "#hash = :hash", map[string]string{"#hash": x.hash}, item{":hash": text(partition)}
	if q.after.sort != "" {
		values[":from"] = text(q.after.sort)
	}
	if q.upTo != "" {
		values[":to"] = text(q.upTo)
	}
	switch {
	case q.after.sort != "" && q.upTo != "":
		expression += " AND #sort BETWEEN :from AND :to"
	case q.after.sort != "":
		expression += " AND #sort >= :from"
	case q.upTo != "":
		expression += " AND #sort <= :to"
	}
	if len(values) > 1 {
		names["#sort"] = x.sort
	}
	return &dynamodb.QueryInput{
		TableName: s.table(q.listing.table.name), IndexName: &x.name,
		KeyConditionExpression: &expression, ExpressionAttributeNames: names, ExpressionAttributeValues: values,
		// One more than the token's own row and those that are needed shows
		// that no more have the time of the last.
		Limit: sdk.Int32(int32(q.count + 2)), ScanIndexForward: sdk.Bool(!q.newest),
	}
}

// countPartition counts the entries of a partition, up to atMost.
func (s *Store) countPartition(ctx context.Context, what string, q query, partition string, atMost int) (n int, err error) {
	in := q.input(s, partition)
	in.Select = types.SelectCount
	for n < atMost {
		in.Limit = sdk.Int32(int32(min(atMost-n, math.MaxInt32)))
		out, err := s.client.Query(ctx, in)
		if err != nil {
			return 0, s.failed(what, q.listing.table.name, err)
		}
		n += int(out.Count)
		if in.ExclusiveStartKey = out.LastEvaluatedKey; in.ExclusiveStartKey == nil {
			break
		}
	}
	return n, nil
}
