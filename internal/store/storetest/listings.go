package storetest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store"
	"github.com/remuda-ci/remuda/internal/store/storetest/rowtest"
)

// listing is one of the port's listings with its items told by name, and rows
// for it whose place in its order follows their number.
type listing struct {
	name string
	add  func(t *testing.T, w world, n int) (name string)
	drop func(t *testing.T, w world, name string) // nil where nothing goes
	list func(ctx context.Context, s store.Store, of lifecycle.PageOf) (names []string, next string, err error)
	// endless listings give a token on the last page as well.
	endless bool
	// unordered listings give their items in any order, but each once.
	unordered bool
}

func names[T any](page lifecycle.Page[T], err error, name func(T) string) ([]string, string, error) {
	var found []string
	for _, item := range page.Items {
		found = append(found, name(item))
	}
	return found, page.Next, err
}

// pageKeys are the keys of a page's rows.
func (k kind[T]) pageKeys(page lifecycle.Page[T], err error) ([]string, string, error) {
	return names(page, err, func(row T) string { return k.String(k.Key(&row)) })
}

// addRecord makes a record that is in every index.
func addRecord(t *testing.T, w world, n int) string {
	r := pooledRecord(fmt.Sprintf("host-%04d", n))
	r.RunID = runID
	r.PooledAt = start.Add(time.Duration(n) * time.Second)
	r.DueAt = r.PooledAt
	instances.put(t, w, r)
	return r.HostKey
}

// dropRecord takes a record out of every index but the table's own order.
func dropRecord(t *testing.T, w world, hostKey string) {
	instances.change(t, w, func(r *lifecycle.Record) { r.RunID, r.PooledAt, r.DueAt = "", time.Time{}, time.Time{} }, hostKey)
}

func addReport(t *testing.T, w world, n int) string {
	p := fullReport(fmt.Sprintf("host-%04d", n))
	w.report(t, p)
	return p.HostKey
}

// addEvent ignores the place: events are only ever added at the end.
func addEvent(t *testing.T, w world, n int) string {
	e := lifecycle.Event{At: start, Repository: repository, RunID: runID, Reason: fmt.Sprintf("event-%04d", n)}
	w.addEvents(t, e)
	return e.Reason
}

// addJob makes a job that is in every index. Four of a name's neighbours are queued and due at the same time.
func addJob(t *testing.T, w world, n int) string {
	j := fullJob(beyondFloat + int64(n))
	j.QueuedAt = start.Add(time.Duration(n/8) * time.Second)
	j.DueAt = j.QueuedAt
	jobs.put(t, w, j)
	return jobKey(j.ID)[0]
}

// dropJob takes a job out of every index.
func dropJob(t *testing.T, w world, name string) {
	jobs.change(t, w, func(j *lifecycle.Job) { j.State, j.DueAt = lifecycle.JobDone, time.Time{} }, name)
}

// dueListing is the listing of the rows of a kind that are due, by the texts of their keys.
func dueListing[T any](name string, k kind[T], key func(n int) store.Key) listing {
	return listing{
		name: name,
		add: func(t *testing.T, w world, n int) string {
			row := k.full(key(n))
			*rowtest.TimeIn(&row, "DueAt") = start.Add(time.Duration(n) * time.Second)
			k.put(t, w, row)
			return k.String(key(n))
		},
		drop: func(t *testing.T, w world, name string) {
			k.change(t, w, func(row *T) { *rowtest.TimeIn(row, "DueAt") = time.Time{} }, strings.Fields(name)...)
		},
		list: func(ctx context.Context, s store.Store, of lifecycle.PageOf) ([]string, string, error) {
			return k.pageKeys(k.due(s, ctx, start.Add(24*time.Hour), of))
		},
	}
}

var listings = []listing{
	{name: "instances of a run", add: addRecord, drop: dropRecord,
		list: func(ctx context.Context, s store.Store, of lifecycle.PageOf) ([]string, string, error) {
			return instances.pageKeys(s.InstancesOfRun(ctx, runID, of))
		}},
	{name: "pooled instances", add: addRecord, drop: dropRecord,
		list: func(ctx context.Context, s store.Store, of lifecycle.PageOf) ([]string, string, error) {
			q := lifecycle.QueueName{ResourceClass: "large", UsageClass: lifecycle.UsageOnDemand}
			return instances.pageKeys(s.PooledInstances(ctx, "default", q, repository, of))
		}},
	{name: "due instances", add: addRecord, drop: dropRecord,
		list: func(ctx context.Context, s store.Store, of lifecycle.PageOf) ([]string, string, error) {
			return instances.pageKeys(s.DueInstances(ctx, start.Add(24*time.Hour), of))
		}},
	{name: "all instances", add: addRecord,
		list: func(ctx context.Context, s store.Store, of lifecycle.PageOf) ([]string, string, error) {
			return instances.pageKeys(s.ListInstances(ctx, lifecycle.Filter{}, of))
		}},
	{name: "filtered instances", add: addRecord, drop: dropRecord,
		list: func(ctx context.Context, s store.Store, of lifecycle.PageOf) ([]string, string, error) {
			return instances.pageKeys(s.ListInstances(ctx, lifecycle.Filter{RunID: runID}, of))
		}},
	{name: "reports", add: addReport, unordered: true,
		drop: func(t *testing.T, w world, hostKey string) {
			if err := w.Store.DeleteReport(t.Context(), hostKey); err != nil {
				t.Fatal(err)
			}
		},
		list: func(ctx context.Context, s store.Store, of lifecycle.PageOf) ([]string, string, error) {
			page, err := s.AllReports(ctx, of)
			return names(page, err, func(p lifecycle.Report) string { return p.HostKey })
		}},
	dueListing("due requests", requests, func(n int) store.Key { return store.Key{repository, runID, fmt.Sprintf("request-%04d", n)} }),
	dueListing("due webhooks", webhooks, func(n int) store.Key { return store.Key{fmt.Sprintf("delivery-%04d", n)} }),
	{name: "waiting jobs", add: addJob, drop: dropJob,
		list: func(ctx context.Context, s store.Store, of lifecycle.PageOf) ([]string, string, error) {
			return jobs.pageKeys(s.WaitingJobs(ctx, jobPool, of))
		}},
	{name: "due jobs", add: addJob, drop: dropJob,
		list: func(ctx context.Context, s store.Store, of lifecycle.PageOf) ([]string, string, error) {
			return jobs.pageKeys(s.DueJobs(ctx, start.Add(24*time.Hour), of))
		}},
	{name: "events of a run", add: addEvent,
		list: func(ctx context.Context, s store.Store, of lifecycle.PageOf) ([]string, string, error) {
			page, err := s.EventsOfRun(ctx, repository, runID, of)
			return names(page, err, func(e lifecycle.Event) string { return e.Reason })
		}},
	{name: "events", add: addEvent, endless: true,
		list: func(ctx context.Context, s store.Store, of lifecycle.PageOf) ([]string, string, error) {
			page, err := s.EventsSince(ctx, of)
			return names(page, err, func(e lifecycle.Event) string { return e.Reason })
		}},
}
