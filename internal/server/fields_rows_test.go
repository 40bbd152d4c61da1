package server_test

import (
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/pause"
	"github.com/remuda-ci/remuda/internal/lifecycle/statement"
	"github.com/remuda-ci/remuda/internal/services/model"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// fieldRows have a row for each field of each request and of each answer, or several.
var fieldRows = []fieldRow{
	{
		method: "Provision", seen: stored,
		req: &remudav1.ProvisionRequest{
			Repository: repository, RunId: "9", RunAttempt: proto.Int32(3), InstanceCount: proto.Int32(2), MinimumCount: proto.Int32(1), Pool: "full", ResourceClass: "xlarge",
			UsageClass: remudav1.UsageClass_USAGE_CLASS_SPOT, AllowedInstanceTypes: []string{"c6i.*"}, MaxRuntime: durationpb.New(time.Hour), Timeout: durationpb.New(5 * time.Minute),
			Labels: []string{"gpu"}, AllowOnDemandFallback: true, RequestId: "asked-9", ReplaceInterrupted: true,
		},
		did: lifecycle.Request{Repository: repository, RunID: "9", RequestID: "asked-9", Spec: lifecycle.Spec{
			RunAttempt: 3, Count: 2, MinimumCount: 1, Pool: "full", ResourceClass: "xlarge", UsageClass: lifecycle.UsageSpot, InstanceTypes: []string{"c6i.*"},
			MaxRuntime: time.Hour, Timeout: 5 * time.Minute, Labels: []string{"gpu"}, AllowOnDemand: true, ReplaceInterrupted: true,
		}},
	},
	{
		method: "Provision", prepare: inOrder(provisioned("1", 1, 1), released("1")), counted: []protoreflect.Name{"instances"},
		req:  &remudav1.ProvisionRequest{Repository: repository, RunId: "2", InstanceCount: proto.Int32(2), RequestId: "asked-2"},
		want: &remudav1.ProvisionResponse{Instances: []*remudav1.Instance{{}, {}}, ReusedCount: 1, CreatedCount: 1, RequestId: "asked-2"},
	},
	{
		method: "Release", prepare: inOrder(provisioned("1", 1, 1), provisioned("1", 2, 1)), counted: []protoreflect.Name{"instances"},
		req:  &remudav1.ReleaseRequest{Repository: repository, RunId: "1", RunAttempt: proto.Int32(1), Wait: true},
		want: &remudav1.ReleaseResponse{Instances: []*remudav1.Instance{{}}, PooledCount: 1},
	},
	{
		method: "Release", prepare: inOrder(provisioned("1", 1, 1), func(f *fieldWorld) { f.store.dirty.Store(true) }), counted: []protoreflect.Name{"instances"},
		req:  &remudav1.ReleaseRequest{Repository: repository, RunId: "1", Wait: true},
		want: &remudav1.ReleaseResponse{Instances: []*remudav1.Instance{{}}, FailedCount: 1},
	},
	{
		method: "Refresh", req: &remudav1.RefreshRequest{DryRun: true},
		prepare: func(f *fieldWorld) {
			r := pooled("i-1")
			r.Threshold = time.Now().Add(-time.Hour)
			r.LaunchedAt, r.CreatedAt, r.PooledAt, r.DueAt = r.Threshold, r.Threshold, r.Threshold, r.Threshold
			f.host(r, lifecycle.Report{HeartbeatAt: time.Now(), Assignment: 1})
		},
		seen: func(f *fieldWorld) any { return f.dryRun }, did: []bool{true},
		want: &remudav1.RefreshResponse{
			Decisions: []*remudav1.Decision{
				{InstanceId: "i-1", Action: remudav1.Action_ACTION_TERMINATE, Reason: "idle until its threshold", Sweep: "refresh", ReasonCode: "idle_timeout"},
				{InstanceId: "i-1", Action: remudav1.Action_ACTION_TERMINATE, Reason: "idle until its threshold", Sweep: "cloud", ReasonCode: "idle_timeout"},
				{Action: remudav1.Action_ACTION_SCALE, Reason: "service film goes from 0 to 1: 1 job waits and there are no runners", Sweep: "services", ReasonCode: "jobs_waiting"},
				{
					Action: remudav1.Action_ACTION_LAUNCH, Reason: "warm pool full: 3 wanted (minimum_idle), 0 idle and 0 coming: 3 missing", Sweep: "warm",
					ReasonCode: "warm_missing",
				},
				{
					Action: remudav1.Action_ACTION_LAUNCH, Reason: "stopped hosts of pool full: 2 wanted (stopped.minimum), 0 idle and 0 coming: 2 missing", Sweep: "warm",
					ReasonCode: "warm_missing",
				},
			},
			Resources: []*remudav1.Resource{{Kind: "queue", Name: "remuda-large-spot", Change: remudav1.ResourceChange_RESOURCE_CHANGE_CREATED, Detail: "it is not there"}},
		},
	},
	{method: "GetInstance", prepare: hostOf7, req: &remudav1.GetInstanceRequest{InstanceId: "i-1"}, want: &remudav1.GetInstanceResponse{Instance: instanceOf7()}},
	{
		method: "GetInstance", prepare: hotHost, req: &remudav1.GetInstanceRequest{InstanceId: "i-2"}, want: &remudav1.GetInstanceResponse{Instance: hotInstance()},
	},
	{
		method: "GetInstance", req: &remudav1.GetInstanceRequest{InstanceId: "i-1"}, want: &remudav1.GetInstanceResponse{Instance: instanceOf7()},
		prepare: func(f *fieldWorld) {
			r := serving("i-1")
			r.InterruptionAt = time.Time{}
			f.host(r, lifecycle.Report{HeartbeatAt: time.Now(), Assignment: 4, Signal: lifecycle.SignalRegOK, Detail: "listening", Busy: true, InterruptionAt: at(5), CacheBytes: 9})
		},
	},
	{
		method: "ListInstances", prepare: inOrder(hostOf7, hotHost), req: &remudav1.ListInstancesRequest{States: []remudav1.State{remudav1.State_STATE_RUNNING}},
		want: &remudav1.ListInstancesResponse{Instances: []*remudav1.Instance{instanceOf7()}},
	},
	{
		method: "ListInstances", prepare: inOrder(hostOf7, hotHost), req: &remudav1.ListInstancesRequest{RunId: "7"},
		want: &remudav1.ListInstancesResponse{Instances: []*remudav1.Instance{instanceOf7()}},
	},
	{
		method: "ListInstances", req: &remudav1.ListInstancesRequest{ResourceClass: "large"}, counted: []protoreflect.Name{"instances"},
		prepare: inOrder(hostOf7, provisioned("1", 1, 1)), want: &remudav1.ListInstancesResponse{Instances: []*remudav1.Instance{{}}},
	},
	{
		method: "ListInstances", req: &remudav1.ListInstancesRequest{}, want: &remudav1.ListInstancesResponse{Instances: []*remudav1.Instance{instanceOf7()}},
		prepare: inOrder(hostOf7, func(f *fieldWorld) {
			ended := serving("i-9")
			ended.State = lifecycle.StateTerminated
			f.host(ended, lifecycle.Report{})
		}),
	},
	{
		method: "ListInstances", req: &remudav1.ListInstancesRequest{Pool: "full"}, counted: []protoreflect.Name{"instances"},
		prepare: inOrder(hostOf7, hotHost, provisioned("1", 1, 1)), want: &remudav1.ListInstancesResponse{Instances: []*remudav1.Instance{{}, {}}},
	},
	{
		method: "ListInstances", req: &remudav1.ListInstancesRequest{Repository: "acme/other"}, counted: []protoreflect.Name{"instances"},
		prepare: inOrder(hostOf7, hotHost), want: &remudav1.ListInstancesResponse{},
	},
	{
		method: "ListInstances", req: &remudav1.ListInstancesRequest{Held: true}, counted: []protoreflect.Name{"instances"},
		prepare: inOrder(hostOf7, hotHost), want: &remudav1.ListInstancesResponse{Instances: []*remudav1.Instance{{}}},
	},
	{
		method: "ListInstances", req: &remudav1.ListInstancesRequest{Retiring: true}, counted: []protoreflect.Name{"instances"},
		prepare: inOrder(hostOf7, hotHost), want: &remudav1.ListInstancesResponse{Instances: []*remudav1.Instance{{}}},
	},
	{
		method: "ListInstances", prepare: inOrder(hostOf7, hotHost), req: &remudav1.ListInstancesRequest{PageSize: 1},
		want: &remudav1.ListInstancesResponse{Instances: []*remudav1.Instance{instanceOf7()}, NextPageToken: pageToken("instances", "i-1")},
	},
	{
		method: "ListInstances", prepare: inOrder(hostOf7, hotHost), req: &remudav1.ListInstancesRequest{PageToken: pageToken("instances", "i-1")},
		want: &remudav1.ListInstancesResponse{Instances: []*remudav1.Instance{hotInstance()}},
	},
	{
		method: "TerminateInstance", prepare: hotHost, req: &remudav1.TerminateInstanceRequest{InstanceId: "i-2", Reason: "enough"}, counted: []protoreflect.Name{"instance"},
		seen: reasons("i-2"), did: []string{"ordered: enough"}, want: &remudav1.TerminateInstanceResponse{Instance: &remudav1.Instance{}},
	},
	{
		method: "HoldInstance", prepare: hotHost, req: &remudav1.HoldInstanceRequest{InstanceId: "i-2", Duration: durationpb.New(time.Hour), Reason: "look"}, counted: []protoreflect.Name{"instance"},
		seen: func(f *fieldWorld) any {
			r, err := f.store.Instance(f.t.Context(), "i-2")
			f.must(err)
			return []any{time.Until(r.Hold).Round(time.Minute), reasons("i-2")(f)}
		},
		did: []any{time.Hour, []string{"held for 1h0m0s: look"}}, want: &remudav1.HoldInstanceResponse{Instance: &remudav1.Instance{}},
	},
	{
		method: "Drain", prepare: inOrder(hostOf7, hotHost), req: &remudav1.DrainRequest{InstanceId: "i-2", Reason: "a new rack"},
		seen: reasons("i-2"), did: []string{"drained by loopback: a new rack"}, want: &remudav1.DrainResponse{DrainedCount: 1},
	},
	{
		method: "Drain", prepare: inOrder(hostOf7, hotHost), req: &remudav1.DrainRequest{Pool: "full"},
		want: &remudav1.DrainResponse{DrainedCount: 1, RetiringCount: 1},
	},
	{
		method: "Drain", prepare: inOrder(hotHost, provisioned("1", 1, 1)), req: &remudav1.DrainRequest{All: true}, want: &remudav1.DrainResponse{DrainedCount: 2},
	},
	{
		method: "DropCache", prepare: inOrder(hostOf7, hotHost, hotHostWithCache), req: &remudav1.DropCacheRequest{Pool: "full", Name: "go", Repository: repository, Reason: "poison"},
		seen: dropped("i-1", "i-6"), did: []any{heldCaches, []string{goCache.Key(repository)}, "cache go of " + repository + " was dropped by loopback: poison"},
		want: &remudav1.DropCacheResponse{HostCount: 1, LeavingCount: 1},
	},
	{
		method: "PausePool", req: &remudav1.PausePoolRequest{Pool: "full", Reason: "a new image"}, seen: pauseOf("full"), did: pause.Pause{Pool: "full", By: "loopback", Reason: "a new image", Version: 1},
		want: &remudav1.PausePoolResponse{Pause: &remudav1.Pause{BeginTime: recently, Operator: "loopback", Reason: "a new image"}},
	},
	{
		method: "ResumePool", prepare: paused, req: &remudav1.ResumePoolRequest{Pool: "full", Reason: "done"}, seen: pauseOf("full"),
		did: pause.Pause{Pool: "full", From: at(1), By: "loopback", Reason: "done", Version: 2}, want: &remudav1.ResumePoolResponse{},
	},
	{
		method: "ListPools", prepare: inOrder(hostOf7, hotHost, stoppedHost, paused), req: &remudav1.ListPoolsRequest{PageSize: 1, PageToken: "default"},
		want: &remudav1.ListPoolsResponse{NextPageToken: "full", Pools: []*remudav1.Pool{{
			Name: "full", ResourceClasses: []string{"xlarge"}, UsageClasses: []remudav1.UsageClass{remudav1.UsageClass_USAGE_CLASS_SPOT}, AllowedInstanceTypes: []string{"c6i.*"},
			Reuse: remudav1.Reuse_REUSE_SAME_OWNER, Privileged: true, MaxRuntime: durationpb.New(3 * time.Hour),
			Counts:      []*remudav1.StateCount{{State: remudav1.State_STATE_RUNNING, Count: 1}, {State: remudav1.State_STATE_IDLE, Count: 2}},
			PooledCount: 1, FreshCount: 1, HotCount: 1, WantedFreshCount: 3, StoppedCount: 1, FreshStoppedCount: 1, WantedFreshStoppedCount: 2, Maximum: 7, HasMaximum: true,
			Pause: &remudav1.Pause{BeginTime: stamp(1), Operator: "alice", Reason: "a new network"},
		}}},
	},
	{
		method: "ListPools", req: &remudav1.ListPoolsRequest{PageToken: "spare"},
		prepare: func(f *fieldWorld) {
			left := serving("i-9")
			left.Pool = "was"
			f.host(left, lifecycle.Report{})
		},
		want: &remudav1.ListPoolsResponse{Pools: []*remudav1.Pool{{
			Name: "was", Removed: true, Counts: []*remudav1.StateCount{{State: remudav1.State_STATE_RUNNING, Count: 1}},
		}}},
	},
	{method: "WatchFleet", req: &remudav1.WatchFleetRequest{RunId: "7"}, want: &remudav1.WatchFleetResponse{Event: eventOf7()}},
	{
		method: "ExplainRun", prepare: inOrder(hostOf7, anEvent), req: &remudav1.ExplainRunRequest{Repository: repository, RunId: "7"},
		want: &remudav1.ExplainRunResponse{Sentences: []string{"SENTENCES"}, Events: []*remudav1.Event{eventOf7()}},
	},
	{
		method: "ExplainRun", prepare: jobOf7, req: &remudav1.ExplainRunRequest{JobId: 70},
		want: &remudav1.ExplainRunResponse{Sentences: []string{"SENTENCES"}, Events: []*remudav1.Event{{
			EventTime: recently, Action: remudav1.Action_ACTION_END_JOB, InstanceId: "i-1", Repository: repository, RunId: "7", RequestId: "asked", Assignment: 4,
			Reason: "job 70 is over", ReasonCode: "job_ended", JobId: 70, JobName: "build", BeginTime: stamp(1),
		}}},
	},
	{method: "GetInstance", prepare: jobHost, req: &remudav1.GetInstanceRequest{InstanceId: "i-5"}, want: &remudav1.GetInstanceResponse{Instance: instanceOf70()}},
	{
		method: "ListInstances", prepare: inOrder(hostOf7, jobHost), req: &remudav1.ListInstancesRequest{RunId: "turn:full:3"},
		want: &remudav1.ListInstancesResponse{Instances: []*remudav1.Instance{instanceOf70()}},
	},
	{
		method: "ExplainRun", req: &remudav1.ExplainRunRequest{InstanceId: "i-1"},
		prepare: inOrder(anEvent, func(f *fieldWorld) {
			r := serving("i-1")
			r.CreatedAt = time.Now().Add(-time.Hour)
			f.host(r, lifecycle.Report{HeartbeatAt: time.Now(), Assignment: 4})
		}),
		want: &remudav1.ExplainRunResponse{Sentences: []string{"SENTENCES"}, Events: []*remudav1.Event{eventOf7()}},
	},
	{
		method: "ExplainRun", req: &remudav1.ExplainRunRequest{Repository: repository, RunId: "7", Statements: true},
		prepare: inOrder(hostOf7, anEvent, func(f *fieldWorld) {
			f.must(f.store.AddEvents(f.t.Context(), []lifecycle.Event{{
				ID: "00", At: time.Now(), InstanceID: "i-1", Assignment: 3, Action: lifecycle.ActionPool, Reason: "clean",
				Statement: "{}", AgentKey: statement.KeyFrom(make([]byte, 32)),
			}}))
		}),
		want: &remudav1.ExplainRunResponse{
			Sentences: []string{"SENTENCES"}, Events: []*remudav1.Event{eventOf7()},
			Statements: []*remudav1.ResetStatement{{InstanceId: "i-1", Assignment: 3, Envelope: "{}", PublicKey: make([]byte, 32)}},
		},
	},
	{
		method: "HoldFleet", req: &remudav1.HoldFleetRequest{Duration: durationpb.New(time.Hour), Reason: "look"}, want: &remudav1.HoldFleetResponse{UntilTime: recently},
		seen: func(f *fieldWorld) any {
			h, err := f.store.FleetHold(f.t.Context())
			f.must(err)
			return []any{time.Until(h.Until).Round(time.Minute), h.Reason, h.By != ""}
		},
		did: []any{time.Hour, "look", true},
	},
	{
		method: "HoldFleet", prepare: func(f *fieldWorld) { f.store.holdFull.Store(true) }, req: &remudav1.HoldFleetRequest{Duration: durationpb.New(time.Hour)},
		want: &remudav1.HoldFleetResponse{UntilTime: recently, Unstored: true},
	},
	{
		method: "NudgeService", prepare: film, req: &remudav1.NudgeServiceRequest{Service: "film"}, counted: []protoreflect.Name{"service"},
		want: &remudav1.NudgeServiceResponse{Service: &remudav1.Service{}},
	},
	{
		method: "ListServices", prepare: film, req: &remudav1.ListServicesRequest{PageSize: 1},
		want: &remudav1.ListServicesResponse{NextPageToken: "film", Services: []*remudav1.Service{{
			Name: "film", Region: "eu-west-1", Cluster: "runners", EcsService: "films", DesiredCount: 7, RunningCount: 3, QueuedCount: 4, BusyCount: 5, IdleChecks: 6,
			CheckTime: stamp(1), Reason: "4 jobs wait", ReasonCode: "jobs_waiting", MoreQueued: true,
		}}},
	},
	{
		method: "ListServices", prepare: film, req: &remudav1.ListServicesRequest{PageToken: "film"},
		want: &remudav1.ListServicesResponse{Services: []*remudav1.Service{{
			Name: "render", Reason: "it is not scaled here: the configuration names no cluster", CheckTime: recently, Workers: []*remudav1.WorkerVersion{{Version: "1.0", OnlineCount: 1, OfflineCount: 1}},
		}}},
	},

	{
		method: "ListServices", prepare: manyWorkers, req: &remudav1.ListServicesRequest{PageToken: "film"},
		want: &remudav1.ListServicesResponse{Services: []*remudav1.Service{{
			Name: "render", Reason: "it is not scaled here: the configuration names no cluster", CheckTime: recently, MoreWorkers: true,
			Workers: []*remudav1.WorkerVersion{{Version: "1.0", OnlineCount: 1000}},
		}}},
	},

	{
		method: "SubmitJob", req: &remudav1.SubmitJobRequest{Service: "render", JobId: "j-9", Payload: []byte("film")},
		want: &remudav1.SubmitJobResponse{Job: &remudav1.WorkerJob{
			JobId: "j-9", Service: "render", State: remudav1.WorkerJobState_WORKER_JOB_STATE_WAITING, Payload: []byte("film"), CreateTime: recently, Reason: "it waits for a worker", Awaited: "AWAITED",
		}},
	},
	{
		method: "Heartbeat", req: &remudav1.HeartbeatRequest{Service: "render", WorkerId: "w-1", Version: "1.1"}, prepare: work,
		want: &remudav1.HeartbeatResponse{Worker: &remudav1.Worker{WorkerId: "w-1", Service: "render", Version: "1.1", Online: true, HeartbeatTime: recently, JobId: "j-1"}},
	},
	{
		method: "ClaimJob", req: &remudav1.ClaimJobRequest{Service: "render", WorkerId: "w-5", Version: "1.0"},
		prepare: func(f *fieldWorld) {
			f.must(f.store.CreateWork(f.t.Context(), model.Job{Service: "render", ID: "j-9", State: model.JobWaiting, CreatedAt: at(1), DueAt: at(5)}))
		},
		seen: func(f *fieldWorld) any {
			w, err := f.store.Worker(f.t.Context(), "render", "w-5")
			f.must(err)
			return w.WorkerVersion
		},
		did: "1.0",
		want: &remudav1.ClaimJobResponse{Job: &remudav1.WorkerJob{
			JobId: "j-9", Service: "render", State: remudav1.WorkerJobState_WORKER_JOB_STATE_RUNNING, WorkerId: "w-5", Attempt: 1, CreateTime: stamp(1), StartTime: recently, ActivityTime: recently,
			Reason: "worker w-5 has it", Awaited: "AWAITED",
		}},
	},
	{
		method: "AppendJobLog", prepare: work, want: &remudav1.AppendJobLogResponse{LogBytes: 10},
		req: &remudav1.AppendJobLogRequest{Service: "render", JobId: "j-1", WorkerId: "w-1", Attempt: 2, Offset: 5, Lines: "more\n"},
	},
	{
		method: "FinishJob", prepare: work, req: &remudav1.FinishJobRequest{Service: "render", JobId: "j-1", WorkerId: "w-1", Attempt: 2, Succeeded: true, Reason: "well"},
		want: &remudav1.FinishJobResponse{Job: &remudav1.WorkerJob{
			JobId: "j-1", Service: "render", State: remudav1.WorkerJobState_WORKER_JOB_STATE_SUCCEEDED, Payload: []byte("film"), WorkerId: "w-1", Attempt: 2,
			CreateTime: stamp(1), StartTime: stamp(2), ActivityTime: recently, EndTime: recently, Reason: "well", LogTail: "half\n", LogBytes: 5, Awaited: "AWAITED",
		}},
	},
	{method: "GetJob", prepare: work, req: &remudav1.GetJobRequest{Service: "render", JobId: "j-1"}, want: &remudav1.GetJobResponse{Job: jobOfRender()}},
	{
		method: "ListJobs", prepare: threeJobs, req: &remudav1.ListJobsRequest{Service: "render", States: []remudav1.WorkerJobState{remudav1.WorkerJobState_WORKER_JOB_STATE_WAITING}},
		want: &remudav1.ListJobsResponse{Jobs: []*remudav1.WorkerJob{waitingJob("j-2"), waitingJob("j-3")}},
	},
	{
		method: "ListJobs", prepare: threeJobs, req: &remudav1.ListJobsRequest{Service: "render", PageSize: 2},
		want: &remudav1.ListJobsResponse{Jobs: []*remudav1.WorkerJob{listed(jobOfRender()), waitingJob("j-2")}, NextPageToken: afterJ2},
	},
	{
		method: "ListJobs", prepare: threeJobs, req: &remudav1.ListJobsRequest{Service: "render", PageToken: afterJ2},
		want: &remudav1.ListJobsResponse{Jobs: []*remudav1.WorkerJob{waitingJob("j-3")}},
	},
	{
		method: "ListWorkers", prepare: film, req: &remudav1.ListWorkersRequest{Service: "render", PageSize: 1},
		want: &remudav1.ListWorkersResponse{Workers: []*remudav1.Worker{{WorkerId: "w-1", Service: "render", Version: "1.0", Online: true, HeartbeatTime: recently}}, NextPageToken: pageToken("workers", "w-1")},
	},
	{
		method: "ListWorkers", prepare: film, req: &remudav1.ListWorkersRequest{Service: "render", PageToken: pageToken("workers", "w-1")},
		want: &remudav1.ListWorkersResponse{Workers: []*remudav1.Worker{{WorkerId: "w-2", Service: "render", Version: "1.0", HeartbeatTime: recently}}},
	},
}
