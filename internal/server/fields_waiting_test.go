package server_test

import (
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// waits are a request of pool default that waits longest, one of pool full, and two jobs of that pool.
func waits(f *fieldWorld) {
	ago := func(minutes int) time.Time { return time.Now().Add(-time.Duration(minutes) * time.Minute) }
	for pool, created := range map[string]time.Time{"default": ago(9), "full": ago(8)} {
		f.must(f.store.CreateRequest(f.t.Context(), lifecycle.Request{
			Repository: repository, RunID: "7", RequestID: "for-" + pool, Kind: lifecycle.RequestByCaller, Spec: lifecycle.Spec{Pool: pool, Count: 3, MinimumCount: 1},
			Taken: []lifecycle.Taken{{HostKey: "i-1", InstanceID: "i-1"}}, CreatedAt: created, Deadline: at(1), DueAt: ago(0), Version: 1,
		}))
	}
	for id := range int64(2) {
		waitsFor(f, 70+id, ago(7))
	}
}

// limited is a request that a limit keeps.
func limited(f *fieldWorld) {
	f.must(f.store.CreateRequest(f.t.Context(), lifecycle.Request{
		Repository: repository, RunID: "7", RequestID: "limited", Kind: lifecycle.RequestByCaller, Spec: lifecycle.Spec{Pool: "full", Count: 1, MinimumCount: 1},
		QuotaReason: "acme has 3 of 3 hosts", QuotaSince: at(1), CreatedAt: time.Now(), Deadline: at(1), DueAt: time.Now(), Version: 1,
	}))
}

func waitsFor(f *fieldWorld, id int64, since time.Time) {
	f.must(f.store.CreateJob(f.t.Context(), lifecycle.Job{
		ID: id, Name: "build", Repository: repository, RunID: "7", Pool: "full", Scope: repository, State: lifecycle.JobWaiting, QueuedAt: since, Version: 1,
	}))
}

// twoMachines are two hosts that run, and that GitHub does not know.
func twoMachines(f *fieldWorld) {
	machines, err := f.cloud.Launch(f.t.Context(), lifecycle.LaunchOrder{
		Repository: repository, RunID: "7", RequestID: "asked", Number: 1, Count: 2, Pool: "full", ResourceClass: "xlarge", UsageClass: lifecycle.UsageOnDemand, CPU: 4, MemoryMiB: 8192, Token: "two",
	})
	f.must(err)
	for _, m := range machines {
		f.cloud.Boot(m.InstanceID)
		r := serving(m.InstanceID)
		r.HostKey, r.Hold, r.Retiring = m.HostKey, time.Time{}, false
		f.host(r, lifecycle.Report{HeartbeatAt: time.Now(), Assignment: 4, Signal: lifecycle.SignalRegOK})
	}
}

// happened are an event of host i-1 now, one of it three hours ago, and one of another host.
func happened(f *fieldWorld) {
	old := lifecycle.Event{ID: "01", At: time.Now().Add(-3 * time.Hour), InstanceID: "i-1", Action: lifecycle.ActionLaunch, Reason: "it is needed"}
	other := lifecycle.Event{ID: "02", At: time.Now().Add(-time.Minute), InstanceID: "i-2", Action: lifecycle.ActionLaunch, Reason: "it is needed"}
	f.must(f.store.AddEvents(f.t.Context(), []lifecycle.Event{old, other}))
	anEvent(f)
}

// later is a time for which a period of its own keeps more hosts idle.
var later = time.Now().UTC().Truncate(time.Minute).Add(3 * time.Hour)

// plannedPools are what the schedules want at any time.
var plannedPools = []*remudav1.PoolPlan{{Pool: "default"}, {Pool: "full", WantedFreshCount: 3}, {Pool: "spare"}}

func launched(id string) *remudav1.Event {
	return &remudav1.Event{EventTime: recently, Action: remudav1.Action_ACTION_LAUNCH, InstanceId: id, Reason: "it is needed"}
}

// waitingRows have a row for each field of ListWaiting and ListEvents.
var waitingRows = []fieldRow{
	{
		method: "ListWaiting", prepare: waits, req: &remudav1.ListWaitingRequest{Pool: "full", RowLimit: 1},
		want: &remudav1.ListWaitingResponse{More: true, Waits: []*remudav1.Wait{{
			Pool: "full", Repository: repository, RunId: "7", RequestId: "for-full", BeginTime: recently, MissingCount: 2,
			ReasonCode: "request_open", Reason: "1 of 3 hosts are taken", Next: "The others are taken from the pool or launched until 00:01:00Z.",
		}}},
	},
	{
		method: "ListWaiting", prepare: func(f *fieldWorld) { waitsFor(f, 70, time.Now()) }, req: &remudav1.ListWaitingRequest{},
		want: &remudav1.ListWaitingResponse{Waits: []*remudav1.Wait{{
			Pool: "full", Repository: repository, RunId: "7", JobId: 70, JobName: "build", BeginTime: recently, MissingCount: 1, Line: "the only one",
			ReasonCode: "job_waiting", Reason: "no host was asked for yet", Next: "The pool asks for one within seconds.",
		}}},
	},
	{
		method: "ListWaiting", prepare: limited, req: &remudav1.ListWaitingRequest{},
		want: &remudav1.ListWaitingResponse{Waits: []*remudav1.Wait{{
			Pool: "full", Repository: repository, RunId: "7", RequestId: "limited", BeginTime: recently, MissingCount: 1,
			ReasonCode: "quota", Reason: "acme has 3 of 3 hosts", ReasonTime: stamp(1), Next: "It gets hosts once there is room, and waits until 00:01:00Z.",
		}}},
	},
	{
		method: "ListEvents", prepare: happened, req: &remudav1.ListEventsRequest{Since: durationpb.New(4 * time.Hour), InstanceId: "i-1"},
		want: &remudav1.ListEventsResponse{FromTime: recently, Events: []*remudav1.Event{launched("i-1"), eventOf7()}},
	},
	{
		method: "PlanScaleDown", prepare: twoMachines, req: &remudav1.PlanScaleDownRequest{RowLimit: 1}, counted: []protoreflect.Name{"decisions"},
		want: &remudav1.PlanScaleDownResponse{
			DecideTime: recently, ReadTime: recently, Decisions: []*remudav1.Decision{{}}, MoreDecisions: 1, Pools: plannedPools, KeptIdleCount: 2,
		},
	},
	{
		method: "PlanScaleDown", req: &remudav1.PlanScaleDownRequest{DecideTime: timestamppb.New(later)},
		want: &remudav1.PlanScaleDownResponse{DecideTime: recently, ReadTime: recently, Pools: plannedPools, KeptIdleCount: 5},
	},
	{
		method: "ListEvents", prepare: happened,
		req:  &remudav1.ListEventsRequest{Since: durationpb.New(4 * time.Hour), UntilTime: timestamppb.New(time.Now().Add(-time.Hour))},
		want: &remudav1.ListEventsResponse{FromTime: recently, Events: []*remudav1.Event{launched("i-1")}},
	},
	{
		method: "ListEvents", prepare: happened, req: &remudav1.ListEventsRequest{RowLimit: 1},
		want: &remudav1.ListEventsResponse{FromTime: recently, Events: []*remudav1.Event{eventOf7()}},
	},
}
