package main

import (
	"context"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/telemetry"
)

// counter counts the calls of a port, such as "store.claim_instance".
type counter struct {
	metrics *telemetry.Metrics
	port    string
}

// count is deferred, and so reads what the call has come to.
func (c counter) count(operation string, err *error) { c.metrics.Called(c.port+"."+operation, *err) }

type (
	record  = lifecycle.Record
	report  = lifecycle.Report
	request = lifecycle.Request
	event   = lifecycle.Event
	lease   = lifecycle.Lease
	pageOf  = lifecycle.PageOf
)

// countedStore is a store whose calls are counted.
type countedStore struct {
	fleet.Store
	counter
}

func (s countedStore) CreateInstance(ctx context.Context, r record) (err error) {
	defer s.count("create_instance", &err)
	return s.Store.CreateInstance(ctx, r)
}

func (s countedStore) UpdateInstance(ctx context.Context, r record) (_ record, err error) {
	defer s.count("update_instance", &err)
	return s.Store.UpdateInstance(ctx, r)
}

func (s countedStore) ClaimInstance(ctx context.Context, c lifecycle.Claim) (_ record, err error) {
	defer s.count("claim_instance", &err)
	return s.Store.ClaimInstance(ctx, c)
}

func (s countedStore) Instance(ctx context.Context, hostKey string) (_ record, err error) {
	defer s.count("instance", &err)
	return s.Store.Instance(ctx, hostKey)
}

func (s countedStore) Instances(ctx context.Context, hostKeys []string) (_ []record, err error) {
	defer s.count("instances", &err)
	return s.Store.Instances(ctx, hostKeys)
}

func (s countedStore) InstancesOfRun(ctx context.Context, runID string, page pageOf) (_ lifecycle.Page[record], err error) {
	defer s.count("instances_of_run", &err)
	return s.Store.InstancesOfRun(ctx, runID, page)
}

func (s countedStore) PooledInstances(ctx context.Context, pool string, q lifecycle.QueueName, trustKey string, page pageOf) (_ lifecycle.Page[record], err error) {
	defer s.count("pooled_instances", &err)
	return s.Store.PooledInstances(ctx, pool, q, trustKey, page)
}

func (s countedStore) DueInstances(ctx context.Context, now time.Time, page pageOf) (_ lifecycle.Page[record], err error) {
	defer s.count("due_instances", &err)
	return s.Store.DueInstances(ctx, now, page)
}

func (s countedStore) ListInstances(ctx context.Context, f lifecycle.Filter, page pageOf) (_ lifecycle.Page[record], err error) {
	defer s.count("list_instances", &err)
	return s.Store.ListInstances(ctx, f, page)
}

func (s countedStore) Reports(ctx context.Context, hostKeys []string) (_ map[string]report, err error) {
	defer s.count("reports", &err)
	return s.Store.Reports(ctx, hostKeys)
}

func (s countedStore) AllReports(ctx context.Context, page pageOf) (_ lifecycle.Page[report], err error) {
	defer s.count("all_reports", &err)
	return s.Store.AllReports(ctx, page)
}

func (s countedStore) DeleteReport(ctx context.Context, hostKey string) (err error) {
	defer s.count("delete_report", &err)
	return s.Store.DeleteReport(ctx, hostKey)
}

func (s countedStore) CreateRequest(ctx context.Context, q request) (err error) {
	defer s.count("create_request", &err)
	return s.Store.CreateRequest(ctx, q)
}

func (s countedStore) UpdateRequest(ctx context.Context, q request) (_ request, err error) {
	defer s.count("update_request", &err)
	return s.Store.UpdateRequest(ctx, q)
}

func (s countedStore) Request(ctx context.Context, repository, runID, requestID string) (_ request, err error) {
	defer s.count("request", &err)
	return s.Store.Request(ctx, repository, runID, requestID)
}

func (s countedStore) RequestsOfRun(ctx context.Context, repository, runID string) (_ []request, err error) {
	defer s.count("requests_of_run", &err)
	return s.Store.RequestsOfRun(ctx, repository, runID)
}

func (s countedStore) DueRequests(ctx context.Context, now time.Time, page pageOf) (_ lifecycle.Page[request], err error) {
	defer s.count("due_requests", &err)
	return s.Store.DueRequests(ctx, now, page)
}

func (s countedStore) AddEvents(ctx context.Context, events []event) (err error) {
	defer s.count("add_events", &err)
	return s.Store.AddEvents(ctx, events)
}

func (s countedStore) EventsOfRun(ctx context.Context, repository, runID string, page pageOf) (_ lifecycle.Page[event], err error) {
	defer s.count("events_of_run", &err)
	return s.Store.EventsOfRun(ctx, repository, runID, page)
}

func (s countedStore) EventsOfInstance(ctx context.Context, instanceID string, since time.Time, limit int) (_ lifecycle.HostHistory, err error) {
	defer s.count("events_of_instance", &err)
	return s.Store.EventsOfInstance(ctx, instanceID, since, limit)
}

func (s countedStore) LastEvent(ctx context.Context) (_ string, err error) {
	defer s.count("last_event", &err)
	return s.Store.LastEvent(ctx)
}

func (s countedStore) EventsSince(ctx context.Context, page pageOf) (_ lifecycle.Page[event], err error) {
	defer s.count("events_since", &err)
	return s.Store.EventsSince(ctx, page)
}

func (s countedStore) Lease(ctx context.Context, name string) (_ lease, err error) {
	defer s.count("lease", &err)
	return s.Store.Lease(ctx, name)
}

func (s countedStore) TakeLease(ctx context.Context, l lease) (_ lease, err error) {
	defer s.count("take_lease", &err)
	return s.Store.TakeLease(ctx, l)
}
