package memory

import (
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/services/model"
	"github.com/remuda-ci/remuda/internal/store/row"
	"github.com/remuda-ci/remuda/internal/store/token"
)

// index is an order of rows, by a key of so many parts whose text sorts as it
// should.
type index[T any] struct {
	name  string
	parts int
	key   func(*T) []string
	copy  func(T) T
}

// The indexes of docs/design.md#what-is-stored, and the orders of the tables themselves.
var (
	byKey = index[lifecycle.Record]{"instances", 1, func(r *lifecycle.Record) []string {
		return []string{r.HostKey}
	}, row.Record}
	byRun = index[lifecycle.Record]{"instances by run", 1, func(r *lifecycle.Record) []string {
		return []string{r.HostKey}
	}, row.Record}
	byPool = index[lifecycle.Record]{"instances by pool", 2, func(r *lifecycle.Record) []string {
		return []string{sortable(r.PooledAt), r.HostKey}
	}, row.Record}
	byDue = index[lifecycle.Record]{"instances by due", 2, func(r *lifecycle.Record) []string {
		return []string{sortable(r.DueAt), r.HostKey}
	}, row.Record}
	reportsByKey = index[lifecycle.Report]{"reports", 1, func(p *lifecycle.Report) []string {
		return []string{p.HostKey}
	}, row.Report}
	requestsByDue = index[lifecycle.Request]{"requests by due", 4, func(q *lifecycle.Request) []string {
		return []string{sortable(q.DueAt), q.Repository, q.RunID, q.RequestID}
	}, row.Request}
	webhooksByDue = index[lifecycle.Webhook]{"webhooks by due", 2, func(w *lifecycle.Webhook) []string {
		return []string{sortable(w.DueAt), w.DeliveryID}
	}, row.Webhook}
	jobsByDue = index[lifecycle.Job]{"jobs by due", 2, func(j *lifecycle.Job) []string {
		return []string{sortable(j.DueAt), sortableID(j.ID)}
	}, row.Job}
	jobsByPool = index[lifecycle.Job]{"jobs by pool", 2, func(j *lifecycle.Job) []string {
		return []string{sortable(j.QueuedAt), sortableID(j.ID)}
	}, row.Job}
	workByAge = index[model.Job]{"waiting jobs of a service", 2, func(j *model.Job) []string {
		return []string{sortable(j.CreatedAt), j.ID}
	}, row.WorkJob}
	workByState = index[model.Job]{"jobs of a service", 2, workByAge.key, row.WorkJob}
	workByDue   = index[model.Job]{"jobs of services by due", 3, func(j *model.Job) []string {
		return []string{sortable(j.DueAt), j.Service, j.ID}
	}, row.WorkJob}
	workersByID = index[model.Worker]{"workers", 1, func(w *model.Worker) []string {
		return []string{w.ID}
	}, row.Worker}
)

// sortable is a time as text of fixed width, so that it sorts like the time.
func sortable(t time.Time) string { return t.Format("2006-01-02T15:04:05.000000000") }

// sortableID is the id of a job as text of fixed width: ids are positive.
func sortableID(id int64) string { return fmt.Sprintf("%019d", id) }

// page returns the page of the rows that are in the index. It looks at every
// row of the table, by reference since rows are large, and sorts only those
// behind the token.
func (x index[T]) page(table iter.Seq[*T], in func(*T) bool, of lifecycle.PageOf) (lifecycle.Page[T], error) {
	after, err := token.Parse(x.name, of.After, x.parts)
	if err != nil {
		return lifecycle.Page[T]{}, err
	}
	type entry struct {
		key []string
		row *T
	}
	var found []entry
	for r := range table {
		if !in(r) {
			continue
		}
		if key := x.key(r); slices.Compare(key, after) > 0 {
			found = append(found, entry{key, r})
		}
	}
	slices.SortFunc(found, func(a, b entry) int { return slices.Compare(a.key, b.key) })

	var page lifecycle.Page[T]
	if len(found) > of.Size() {
		found = found[:of.Size()]
		page.Next = token.New(x.name, found[len(found)-1].key...)
	}
	page.Items = slices.Grow(page.Items, len(found))
	for _, e := range found {
		page.Items = append(page.Items, x.copy(*e.row))
	}
	return page, nil
}
