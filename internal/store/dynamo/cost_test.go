package dynamo_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"
	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/awstest"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/ledger"
	"github.com/remuda-ci/remuda/internal/lifecycle/replicas"
	"github.com/remuda-ci/remuda/internal/lifecycle/slots"
	"github.com/remuda-ci/remuda/internal/services/model"
	"github.com/remuda-ci/remuda/internal/store/dynamo"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

// meter asks DynamoDB what each call costs.
type meter struct {
	mu          sync.Mutex
	operations  []string
	read, write float64
}

func (m *meter) add(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("meter", m.handle), middleware.Before)
}

func (m *meter) handle(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
) (middleware.InitializeOutput, middleware.Metadata, error) {
	if f := reflect.ValueOf(in.Parameters).Elem().FieldByName("ReturnConsumedCapacity"); f.IsValid() {
		f.Set(reflect.ValueOf(types.ReturnConsumedCapacityTotal))
	}
	out, metadata, err := next.HandleInitialize(ctx, in)
	operation := awsmiddleware.GetOperationName(ctx)
	var units float64
	if err == nil {
		units = unitsOf(reflect.ValueOf(out.Result).Elem().FieldByName("ConsumedCapacity"))
	}
	if query, ok := in.Parameters.(*dynamodb.QueryInput); ok && units == 0 {
		// DynamoDB Local says that a query which finds nothing is free.
		if units = 0.5; sdk.ToBool(query.ConsistentRead) {
			units = 1
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.operations = append(m.operations, operation)
	if strings.Contains(operation, "Get") || operation == "Query" || operation == "Scan" {
		m.read += units
	} else {
		m.write += units
	}
	return out, metadata, err
}

func unitsOf(capacity reflect.Value) (units float64) {
	switch c := capacity.Interface().(type) {
	case *types.ConsumedCapacity:
		units = sdk.ToFloat64(c.CapacityUnits)
	case []types.ConsumedCapacity:
		for _, each := range c {
			units += sdk.ToFloat64(each.CapacityUnits)
		}
	}
	return units
}

// of tells what was called while do ran, in order, and what that cost.
func (m *meter) of(t *testing.T, do func() error) string {
	t.Helper()
	m.mu.Lock()
	m.operations, m.read, m.write = nil, 0, 0
	m.mu.Unlock()
	if err := do(); err != nil {
		t.Error(err)
	}
	return fmt.Sprintf("%s: %v read, %v write", counted(m.operations), m.read, m.write)
}

// counted is a list with its repetitions counted, such as "4 Query, GetItem".
func counted(names []string) string {
	var parts []string
	for i := 0; i < len(names); {
		n := 1
		for i+n < len(names) && names[i+n] == names[i] {
			n++
		}
		part := names[i]
		if n > 1 {
			part = fmt.Sprint(n, " ", part)
		}
		parts, i = append(parts, part), i+n
	}
	return strings.Join(parts, ", ")
}

// wantErr is for a call that must end with an error.
func wantErr(got, want error) error {
	if errors.Is(got, want) {
		return nil
	}
	return fmt.Errorf("got error %v, want %w", got, want)
}

// TestCosts is what each method calls, and the capacity units that DynamoDB
// says it used: per row below 1 KB, in a fleet of 8 hosts.
func TestCosts(t *testing.T) {
	racepass.CoveredBy(t, "TestStore")
	t.Parallel()
	config := awstest.Config(t, awstest.DynamoDB(t))
	open(t, dynamo.Options{})
	m := &meter{}
	client := dynamodb.NewFromConfig(config, func(o *dynamodb.Options) {
		o.DisableValidateResponseChecksum = true
		o.APIOptions = append(o.APIOptions, m.add)
	})
	s := dynamo.New(client, dynamo.Options{})

	const hosts = 8
	var keys []string
	for n := range hosts {
		r := pooledRecord(hostKeyOf(n))
		r.DueAt = began.Add(time.Hour)
		keys = append(keys, r.HostKey)
		if err := s.CreateInstance(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		if err := s.ForHost(r.HostKey).PutReport(t.Context(), lifecycle.Report{HeartbeatAt: began}); err != nil {
			t.Fatal(err)
		}
	}
	large := lifecycle.QueueName{ResourceClass: "large", UsageClass: lifecycle.UsageOnDemand}
	launched := pooledRecord(hostKeyOf(100))
	launched.State, launched.RunID, launched.PooledAt = lifecycle.StateCreated, runID, time.Time{}
	var claimed, running, pooled lifecycle.Record
	var request lifecycle.Request
	var hook lifecycle.Webhook
	var waits lifecycle.Job
	var work model.Job
	var at model.Worker
	ctx, of := t.Context(), lifecycle.PageOf{}
	host := s.ForHost(hostKeyOf(0))
	update := func(r lifecycle.Record, into *lifecycle.Record) (err error) {
		*into, err = s.UpdateInstance(ctx, r)
		return err
	}
	other := newEvent("of another run")
	other.RunID = "4712"

	for _, test := range []struct {
		name string
		do   func() error
		want string
	}{
		{"CreateInstance", func() error { return s.CreateInstance(ctx, launched) },
			"PutItem: 0 read, 4 write"}, // and by-run, by-due, by-host
		{"ClaimInstance", func() (err error) { claimed, err = s.ClaimInstance(ctx, claimOf(hostKeyOf(0), runID)); return err },
			"UpdateItem: 0 read, 5 write"}, // out of by-pool, into by-run, within by-due (2)
		{"UpdateInstance, ready", func() error {
			r := claimed
			r.State, r.Registration, r.DueAt = lifecycle.StateRunning, nil, began.Add(2*time.Hour)
			return update(r, &running)
		}, "PutItem: 0 read, 3 write"}, // within by-due (2)
		{"UpdateInstance, pooled", func() error {
			r := running
			r.State, r.RunID, r.PooledAt = lifecycle.StateIdle, "", began
			return update(r, &pooled)
		}, "PutItem: 0 read, 3 write"}, // out of by-run, into by-pool
		{"UpdateInstance, ended", func() error {
			r := pooled
			r.State, r.PooledAt, r.DueAt = lifecycle.StateTerminated, time.Time{}, time.Time{}
			return update(r, &pooled)
		}, "PutItem: 0 read, 5 write"}, // out of by-pool and by-due, within by-host (2)
		{"Instance", func() error { _, err := s.Instance(ctx, keys[0]); return err }, "GetItem: 1 read, 0 write"},
		{"Instances, 8", func() error { _, err := s.Instances(ctx, keys); return err }, "BatchGetItem: 8 read, 0 write"},
		{"InstancesOfRun, 1", func() error { _, err := s.InstancesOfRun(ctx, runID, of); return err },
			"Query, BatchGetItem: 1.5 read, 0 write"},
		{"InstancesOfRun, none", func() error { _, err := s.InstancesOfRun(ctx, "none", of); return err }, "Query: 0.5 read, 0 write"},
		{"PooledInstances, 7", func() error { _, err := s.PooledInstances(ctx, "default", large, repository, of); return err },
			"Query, BatchGetItem: 7.5 read, 0 write"},
		{"NewestPooled, 7", func() error { _, err := s.NewestPooled(ctx, "default", large, repository, 10); return err },
			"Query, BatchGetItem: 7.5 read, 0 write"},
		{"ClaimablePooled, 7", func() error { _, err := s.ClaimablePooled(ctx, "default", large, repository, 10); return err },
			"Query, BatchGetItem: 4 read, 0 write"},
		{"DueInstances, none", func() error { _, err := s.DueInstances(ctx, began, of); return err }, "4 Query: 2 read, 0 write"},
		{"DueInstances, 8", func() error { _, err := s.DueInstances(ctx, began.Add(time.Hour), of); return err },
			"4 Query, BatchGetItem: 10 read, 0 write"},
		{"ListInstances, 8 live", func() error {
			_, err := s.ListInstances(ctx, lifecycle.Filter{States: []lifecycle.State{lifecycle.StateIdle, lifecycle.StateCreated}}, of)
			return err
		}, "4 Query, BatchGetItem: 6 read, 0 write"},
		{"ListInstances, all 9", func() error { _, err := s.ListInstances(ctx, lifecycle.Filter{}, of); return err },
			"8 Query, BatchGetItem: 8.5 read, 0 write"},

		{"Reports, 8", func() error { _, err := s.Reports(ctx, keys); return err }, "BatchGetItem: 4 read, 0 write"},
		{"AllReports, 8", func() error { _, err := s.AllReports(ctx, of); return err }, "Scan: 0.5 read, 0 write"},
		{"DeleteReport", func() error { return s.DeleteReport(ctx, keys[7]) }, "DeleteItem: 0 read, 1 write"},
		{"HostView.Record", func() error { _, _, err := host.Record(ctx, false); return err }, "GetItem: 0.5 read, 0 write"},
		{"HostView.Record, consistent", func() error { _, _, err := host.Record(ctx, true); return err }, "GetItem: 1 read, 0 write"},
		{"HostView.PutReport", func() error { return host.PutReport(ctx, lifecycle.Report{HeartbeatAt: began, Busy: true}) },
			"UpdateItem: 0 read, 1 write"},

		{"CreateRequest", func() error { request = newRequest("a"); return s.CreateRequest(ctx, request) }, "PutItem: 0 read, 2 write"},
		{"UpdateRequest", func() (err error) {
			request.DueAt = began.Add(2 * time.Minute)
			request, err = s.UpdateRequest(ctx, request)
			return err
		}, "PutItem: 0 read, 3 write"},
		{"UpdateRequest, 200 hosts", func() (err error) {
			for n := range 200 {
				request.Taken = append(request.Taken, lifecycle.Taken{HostKey: hostKeyOf(n), InstanceID: "i-0123456789abcdef0"})
			}
			request, err = s.UpdateRequest(ctx, request)
			return err
		}, "PutItem: 0 read, 17 write"},
		{"Request, 200 hosts", func() error { _, err := s.Request(ctx, repository, runID, "a"); return err },
			"GetItem: 5 read, 0 write"},
		{"RequestsOfRun, 200 hosts", func() error { _, err := s.RequestsOfRun(ctx, repository, runID); return err },
			"Query: 5 read, 0 write"},
		{"DueRequests, none", func() error { _, err := s.DueRequests(ctx, began, of); return err }, "4 Query: 2 read, 0 write"},

		{"CreateWebhook", func() error { hook = newWebhook("a"); return s.CreateWebhook(ctx, hook) }, "PutItem: 0 read, 2 write"},
		{"CreateWebhook, repeated", func() error { return wantErr(s.CreateWebhook(ctx, hook), lifecycle.ErrExists) }, "PutItem: 0 read, 0 write"}, // DynamoDB takes a unit for it
		{"DueWebhooks, 1", func() error { _, err := s.DueWebhooks(ctx, began, of); return err }, "4 Query, BatchGetItem: 3 read, 0 write"},
		{"UpdateWebhook, done with", func() (err error) {
			hook.DueAt, hook.ExpiresAt = time.Time{}, began.Add(time.Hour)
			hook, err = s.UpdateWebhook(ctx, hook)
			return err
		}, "PutItem: 0 read, 2 write"},
		{"CreateJob", func() error { waits = newJob(51234567890); return s.CreateJob(ctx, waits) },
			"PutItem: 0 read, 4 write"}, // and by-run, by-pool, by-due
		{"WaitingJobs, 1", func() error { _, err := s.WaitingJobs(ctx, jobPool, of); return err }, "Query, BatchGetItem: 1.5 read, 0 write"},
		{"OpenJobsOfRun, 1", func() error { _, err := s.OpenJobsOfRun(ctx, repository, runID); return err },
			"Query, BatchGetItem: 1.5 read, 0 write"},
		{"DueJobs, none", func() error { _, err := s.DueJobs(ctx, began, of); return err }, "4 Query: 2 read, 0 write"},
		{"Job", func() error { _, err := s.Job(ctx, waits.ID); return err }, "GetItem: 1 read, 0 write"},
		{"UpdateJob, begun", func() (err error) {
			waits.State, waits.DueAt = lifecycle.JobRunning, began.Add(time.Hour)
			waits, err = s.UpdateJob(ctx, waits)
			return err
		}, "PutItem: 0 read, 4 write"}, // out of by-pool, within by-due (2)
		{"UpdateJob, done", func() (err error) {
			waits.State, waits.DueAt, waits.ExpiresAt = lifecycle.JobDone, time.Time{}, began.Add(time.Hour)
			waits, err = s.UpdateJob(ctx, waits)
			return err
		}, "PutItem: 0 read, 3 write"}, // out of by-run and by-due
		{"UpdateTurns, 20 open", func() error {
			turns := slots.Table{Pool: jobPool}
			for n := range int64(20) {
				turns.Open = append(turns.Open, slots.Slot{
					Number: n, JobID: waits.ID + n, Repository: repository, Scope: repository, AssignedAt: began,
					HostKey: hostKeyOf(int(n)), Runner: lifecycle.RunnerName(n, "i-0123456789abcdef0"),
				})
			}
			_, err := s.UpdateSlotTable(ctx, turns)
			return err
		}, "PutItem: 0 read, 1 write"},
		{"Turns, 20 open", func() error { _, err := s.SlotTable(ctx, jobPool); return err }, "GetItem: 1 read, 0 write"},
		{"CreateWork", func() error { work = newWork("a"); return s.CreateWork(ctx, work) }, "PutItem: 0 read, 3 write"}, // and by-pool, by-due
		{"WaitingWork, 1", func() error { _, err := s.WaitingWork(ctx, "render", 25); return err }, "Query: 0.5 read, 0 write"},
		{"CountWork, 1", func() error { _, err := s.CountWork(ctx, "render", 1000); return err }, "2 Query: 1 read, 0 write"},
		{"ListWork, 1", func() error { _, err := s.ListWork(ctx, "render", model.JobStates, of); return err }, "4 Query, BatchGetItem: 2.5 read, 0 write"},
		{"UpdateWorker, the first", func() (err error) { at, err = s.UpdateWorker(ctx, newWorker("w")); return err }, "PutItem: 0 read, 2 write"}, // and by-run
		{"UpdateWorker, a heartbeat", func() error {
			_, err := s.UpdateWorker(ctx, at.WithHeartbeat("1.1", began.Add(time.Minute)))
			return err
		},
			"PutItem: 0 read, 1 write"},
		{"Worker", func() error { _, err := s.Worker(ctx, "render", "w"); return err }, "GetItem: 1 read, 0 write"},
		{"UpdateWork, claimed", func() (err error) {
			work.Version = 1
			if work, err = work.Claim("w", began); err == nil {
				work, err = s.UpdateWork(ctx, work)
			}
			return err
		}, "PutItem: 0 read, 5 write"}, // within by-pool and by-due (2 each)
		{"UpdateWork, lines", func() (err error) {
			if work, err = work.Append(model.JobAttempt{WorkerID: "w", Number: 1}, 0, "frame 1 of 2\n", began.Add(time.Minute)); err == nil {
				work, err = s.UpdateWork(ctx, work)
			}
			return err
		}, "PutItem: 0 read, 1 write"},
		{"Work", func() error { _, err := s.Work(ctx, "render", "a"); return err }, "GetItem: 1 read, 0 write"},
		{"DueWork, none", func() error { _, err := s.DueWork(ctx, began, of); return err }, "4 Query: 2 read, 0 write"},
		{"UpdateWork, ended", func() (err error) {
			if work, err = work.Finish(model.JobAttempt{WorkerID: "w", Number: 1}, true, "", began.Add(time.Minute)); err == nil {
				work, err = s.UpdateWork(ctx, work)
			}
			return err
		}, "PutItem: 0 read, 4 write"}, // within by-pool (2), out of by-due
		{"SeeOnce", func() error { return s.SeeOnce(ctx, "token", "a", began.Add(time.Hour)) }, "PutItem: 0 read, 1 write"},

		{"AddEvents, the first of all", func() error { return s.AddEvents(ctx, []lifecycle.Event{newEvent("a")}) },
			"Query, GetItem, 2 PutItem: 2 read, 3 write"},
		{"AddEvents, the first of a replica", func() error {
			s = dynamo.New(client, dynamo.Options{})
			return s.AddEvents(ctx, []lifecycle.Event{newEvent("a")})
		},
			"Query, PutItem: 1 read, 2 write"},
		{"AddEvents, 3 of a run", func() error {
			return s.AddEvents(ctx, []lifecycle.Event{newEvent("a"), newEvent("b"), newEvent("c")})
		},
			"PutItem: 0 read, 2 write"},
		{"AddEvents, of 2 runs", func() error { return s.AddEvents(ctx, []lifecycle.Event{newEvent("a"), other}) },
			"PutItem, BatchWriteItem: 0 read, 5 write"},
		{"EventsOfRun", func() error { _, err := s.EventsOfRun(ctx, repository, runID, of); return err }, "Query: 0.5 read, 0 write"},
		{"EventsOfInstance", func() error { _, err := s.EventsOfInstance(ctx, "i-a", began, time.Time{}, 10); return err }, "Query: 0.5 read, 0 write"},
		{"EventsSince, nothing new", func() error {
			last, err := s.LastEvent(ctx)
			if err == nil {
				_, err = s.EventsSince(ctx, lifecycle.PageOf{After: last})
			}
			return err
		}, "2 Query: 2 read, 0 write"}, // 1 for LastEvent
		{"TakeLease", func() error { _, err := s.TakeLease(ctx, replicas.Lease{Name: "sweep", Holder: "a"}); return err },
			"PutItem: 0 read, 1 write"},
		{"Lease", func() error { _, err := s.Lease(ctx, "sweep"); return err }, "GetItem: 1 read, 0 write"},
		{"FleetHold", func() error { _, err := s.FleetHold(ctx); return err }, "GetItem: 1 read, 0 write"},
		{"UpdateAccount, 20 requests", func() error {
			a := ledger.Quota{Name: "owner/acme"}
			for n := range 20 {
				a.Reservations = append(a.Reservations, ledger.Reservation{Repository: repository, RunID: fmt.Sprint(1<<33 + n), RequestID: hostKeyOf(n), Hosts: 3, At: began})
			}
			_, err := s.UpdateQuotaLedger(ctx, a)
			return err
		}, "PutItem: 0 read, 1 write"},
		{"Account, 20 requests", func() error { _, err := s.QuotaLedger(ctx, "owner/acme"); return err }, "GetItem: 1 read, 0 write"},
	} {
		got := m.of(t, test.do)
		t.Logf("%-34s %s", test.name, got)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}
