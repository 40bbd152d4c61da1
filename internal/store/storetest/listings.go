package storetest

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// listing is one of the port's listings with its items told by name, and rows
// for it whose place in its order follows their number.
type listing struct {
	name string
	add  func(t *testing.T, w world, n int) (name string)
	drop func(t *testing.T, w world, name string) // nil where nothing goes
	list func(t *testing.T, w world, of lifecycle.PageOf) (names []string, next string, err error)
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

func recordNames(page recordPage, err error) ([]string, string, error) {
	return names(page, err, func(r lifecycle.Record) string { return r.HostKey })
}

// addRecord makes a record that is in every index.
func addRecord(t *testing.T, w world, n int) string {
	r := pooledRecord(fmt.Sprintf("host-%04d", n))
	r.RunID = runID
	r.PooledAt = start.Add(time.Duration(n) * time.Second)
	r.DueAt = r.PooledAt
	w.create(t, r)
	return r.HostKey
}

// dropRecord takes a record out of every index but the table's own order.
func dropRecord(t *testing.T, w world, hostKey string) {
	r := w.instance(t, hostKey)
	r.RunID, r.PooledAt, r.DueAt = "", time.Time{}, time.Time{}
	w.update(t, r)
}

func addRequest(t *testing.T, w world, n int) string {
	q := fullRequest(fmt.Sprintf("request-%04d", n))
	q.DueAt = start.Add(time.Duration(n) * time.Second)
	w.createRequests(t, q)
	return q.RequestID
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

func addWebhook(t *testing.T, w world, n int) string {
	h := fullWebhook(fmt.Sprintf("delivery-%04d", n))
	h.DueAt = start.Add(time.Duration(n) * time.Second)
	w.createWebhooks(t, h)
	return h.DeliveryID
}

// addJob makes a job that is in every index. Four of a name's neighbours are
// queued and due at the same time.
func addJob(t *testing.T, w world, n int) string {
	j := fullJob(beyondFloat + int64(n))
	j.QueuedAt = start.Add(time.Duration(n/8) * time.Second)
	j.DueAt = j.QueuedAt
	w.createJobs(t, j)
	return fmt.Sprint(j.ID)
}

// dropJob takes a job out of every index.
func dropJob(t *testing.T, w world, name string) {
	id, err := strconv.ParseInt(name, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	w.changeJob(t, id, func(j *lifecycle.Job) { j.State, j.DueAt = lifecycle.JobDone, time.Time{} })
}

func jobNames(page jobPage, err error) ([]string, string, error) {
	return names(page, err, func(j lifecycle.Job) string { return fmt.Sprint(j.ID) })
}

var listings = []listing{
	{name: "instances of a run", add: addRecord, drop: dropRecord,
		list: func(t *testing.T, w world, of lifecycle.PageOf) ([]string, string, error) {
			return recordNames(w.Store.InstancesOfRun(t.Context(), runID, of))
		}},
	{name: "pooled instances", add: addRecord, drop: dropRecord,
		list: func(t *testing.T, w world, of lifecycle.PageOf) ([]string, string, error) {
			q := lifecycle.QueueName{ResourceClass: "large", UsageClass: lifecycle.UsageOnDemand}
			return recordNames(w.Store.PooledInstances(t.Context(), "default", q, repository, of))
		}},
	{name: "due instances", add: addRecord, drop: dropRecord,
		list: func(t *testing.T, w world, of lifecycle.PageOf) ([]string, string, error) {
			return recordNames(w.Store.DueInstances(t.Context(), start.Add(24*time.Hour), of))
		}},
	{name: "all instances", add: addRecord,
		list: func(t *testing.T, w world, of lifecycle.PageOf) ([]string, string, error) {
			return recordNames(w.Store.ListInstances(t.Context(), lifecycle.Filter{}, of))
		}},
	{name: "filtered instances", add: addRecord, drop: dropRecord,
		list: func(t *testing.T, w world, of lifecycle.PageOf) ([]string, string, error) {
			return recordNames(w.Store.ListInstances(t.Context(), lifecycle.Filter{RunID: runID}, of))
		}},
	{name: "reports", add: addReport, unordered: true,
		drop: func(t *testing.T, w world, hostKey string) {
			if err := w.Store.DeleteReport(t.Context(), hostKey); err != nil {
				t.Fatal(err)
			}
		},
		list: func(t *testing.T, w world, of lifecycle.PageOf) ([]string, string, error) {
			page, err := w.Store.AllReports(t.Context(), of)
			return names(page, err, func(p lifecycle.Report) string { return p.HostKey })
		}},
	{name: "due requests", add: addRequest,
		drop: func(t *testing.T, w world, id string) {
			q, err := w.Store.Request(t.Context(), repository, runID, id)
			if err != nil {
				t.Fatal(err)
			}
			q.DueAt = time.Time{}
			if _, err := w.Store.UpdateRequest(t.Context(), q); err != nil {
				t.Fatal(err)
			}
		},
		list: func(t *testing.T, w world, of lifecycle.PageOf) ([]string, string, error) {
			page, err := w.Store.DueRequests(t.Context(), start.Add(24*time.Hour), of)
			return names(page, err, func(q lifecycle.Request) string { return q.RequestID })
		}},
	{name: "due webhooks", add: addWebhook,
		drop: func(t *testing.T, w world, id string) {
			h := w.webhook(t, id)
			h.DueAt = time.Time{}
			if _, err := w.Store.UpdateWebhook(t.Context(), h); err != nil {
				t.Fatal(err)
			}
		},
		list: func(t *testing.T, w world, of lifecycle.PageOf) ([]string, string, error) {
			page, err := w.Store.DueWebhooks(t.Context(), start.Add(24*time.Hour), of)
			return names(page, err, func(h lifecycle.Webhook) string { return h.DeliveryID })
		}},
	{name: "waiting jobs", add: addJob, drop: dropJob,
		list: func(t *testing.T, w world, of lifecycle.PageOf) ([]string, string, error) {
			return jobNames(w.Store.WaitingJobs(t.Context(), jobPool, of))
		}},
	{name: "due jobs", add: addJob, drop: dropJob,
		list: func(t *testing.T, w world, of lifecycle.PageOf) ([]string, string, error) {
			return jobNames(w.Store.DueJobs(t.Context(), start.Add(24*time.Hour), of))
		}},
	{name: "events of a run", add: addEvent,
		list: func(t *testing.T, w world, of lifecycle.PageOf) ([]string, string, error) {
			page, err := w.Store.EventsOfRun(t.Context(), repository, runID, of)
			return names(page, err, func(e lifecycle.Event) string { return e.Reason })
		}},
	{name: "events", add: addEvent, endless: true,
		list: func(t *testing.T, w world, of lifecycle.PageOf) ([]string, string, error) {
			page, err := w.Store.EventsSince(t.Context(), of)
			return names(page, err, func(e lifecycle.Event) string { return e.Reason })
		}},
}
