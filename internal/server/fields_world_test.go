package server_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/cache"
	"github.com/remuda-ci/remuda/internal/lifecycle/pause"
	"github.com/remuda-ci/remuda/internal/lifecycle/resources"
	"github.com/remuda-ci/remuda/internal/lifecycle/slots"
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/server"
	"github.com/remuda-ci/remuda/internal/services"
	"github.com/remuda-ci/remuda/internal/services/model"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// fieldRow is a call and what comes of it.
type fieldRow struct {
	method  string
	prepare func(f *fieldWorld)
	req     proto.Message
	// seen is what the call did beside its answer; nil: nothing else is looked at.
	seen func(f *fieldWorld) any
	want proto.Message
	// did is what seen has to be.
	did any
	// counted are fields of the answer whose messages are only counted.
	counted []protoreflect.Name
}

// fieldWorld is a world with a host, a service and a job whose rows have everything.
type fieldWorld struct {
	*world
	t      *testing.T
	dryRun []bool // of each refresh
}

// at is a time that no clock of a test shows.
func at(minute int) time.Time { return time.Date(2040, 1, 1, 0, minute, 0, 0, time.UTC) }

func stamp(minute int) *timestamppb.Timestamp { return timestamppb.New(at(minute)) }

// recently stands for every time that is about now.
var recently = timestamppb.New(time.Unix(1, 0))

func newFieldWorld(t *testing.T) *fieldWorld {
	t.Helper()
	f := &fieldWorld{t: t}
	c := containers{map[string]int{}}
	f.world = newWorldOf(t, server.Callers{}, func(o *fleet.Options) {
		times := lifecycle.DefaultPolicy()
		times.Reuse, times.MaxRuntime = lifecycle.ReuseSameOwner, 3*time.Hour
		o.Classes["xlarge"] = fleet.Class{CPU: 4, MemoryMiB: 8192}
		o.Pools["full"] = fleet.Pool{
			Name: "full", ResourceClasses: []string{"xlarge"}, UsageClasses: []lifecycle.UsageClass{lifecycle.UsageSpot}, InstanceTypes: []string{"c6i.*"},
			Privileged: true, Maximum: new(7), Policy: times, Caches: []cache.Spec{goCache},
			Warm:    &fleet.WarmPool{Spec: lifecycle.Spec{ResourceClass: "xlarge", UsageClass: lifecycle.UsageSpot}, Policy: policy.WarmPolicy{MinimumIdle: 3}},
			Stopped: &fleet.WarmPool{Spec: lifecycle.Spec{ResourceClass: "xlarge", UsageClass: lifecycle.UsageOnDemand}, Policy: policy.WarmPolicy{MinimumIdle: 2, Key: "stopped.minimum"}},
		}
		o.Services = &services.Options{Store: o.Store.(*hosts).Store, Scaler: c, Services: map[string]services.Service{
			"film":   {Name: "film", Region: "eu-west-1", Cluster: "runners", ECSService: "films", Backlog: c, Policy: policy.ServicePolicy{Maximum: 2, BacklogPerRunner: 10, IdleChecks: 5}},
			"render": {Name: "render"},
		}}
		o.Jobs = &fleet.JobOptions{
			Store: o.Store.(*hosts).Store, GitHub: struct{ fleet.GitHubJobs }{}, Pools: map[string]fleet.JobPool{"full": {JobPool: policy.JobPool{Maximum: 7}, Labels: []string{"full"}}},
			URL: func(repository, runID string, id int64) string {
				return fmt.Sprint("https://github.com/", repository, "/", runID, "/", id)
			},
		}
		night, err := policy.ParsePeriod(later.Format("4 15 * * *"), "UTC", 5, policy.EvictOldest)
		f.must(err)
		always, err := policy.ParsePeriod("* * * * *", "UTC", 2, policy.EvictOldest)
		f.must(err)
		o.ScaleDown = &fleet.ScaleDown{GitHub: o.GitHub.(*tokens), Policy: policy.ScaleDown{Idle: []policy.Period{night, always}}}
		o.Ensure = func(_ context.Context, dryRun bool) ([]resources.Resource, error) {
			f.dryRun = append(f.dryRun, dryRun)
			return []resources.Resource{{Kind: "queue", Name: "remuda-large-spot", Change: resources.Created, Detail: "it is not there"}}, nil
		}
	})
	return f
}

func (f *fieldWorld) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// host stores a host and what its agent says.
func (f *fieldWorld) host(r lifecycle.Record, report lifecycle.Report) {
	f.t.Helper()
	f.must(f.store.Store.CreateInstance(f.t.Context(), r))
	report.HostKey = r.HostKey
	f.must(f.store.ForHost(r.HostKey).PutReport(f.t.Context(), report))
}

// serving is a host with a run that has everything that such a host can have.
func serving(id string) lifecycle.Record {
	return lifecycle.Record{
		HostKey: id, InstanceID: id, Pool: "full", State: lifecycle.StateRunning, RunID: "7", RunAttempt: 2, Repository: repository, RequestID: "asked",
		Assignment: 4, Threshold: at(1), RuntimeEndsAt: at(1), DueAt: at(1), Labels: []string{"gpu"}, CreatedAt: at(2), UpdatedAt: at(3), LaunchedAt: time.Now().Add(-time.Hour),
		Hardware: lifecycle.Hardware{ResourceClass: "xlarge", UsageClass: lifecycle.UsageSpot, InstanceType: "c6i.xlarge", CPU: 4, MemoryMiB: 8192, Zone: "eu-west-1a"},
		Hold:     at(4), Retiring: true, RetiringReason: "a new image", InterruptionAt: at(5), Reason: "it serves", ReasonCode: "served", OrphanAt: at(6), IdleDetectedAt: at(7),
		Caches: heldCaches,
		Stop:   &lifecycle.Stop{At: at(8)}, RootVolume: &lifecycle.RootVolume{At: at(9)},
	}
}

// pooled is a host in the pool whose runner listens.
func pooled(id string) lifecycle.Record {
	return lifecycle.Record{
		HostKey: id, InstanceID: id, Pool: "full", State: lifecycle.StateIdle, Assignment: 1, Threshold: at(1), DueAt: at(1), PooledAt: at(2), RestingAt: at(3), CreatedAt: at(2),
		LaunchedAt: at(2), Hardware: lifecycle.Hardware{ResourceClass: "xlarge", UsageClass: lifecycle.UsageSpot}, Standby: &lifecycle.Standby{Assignment: 1, RunnerID: 5},
	}
}

// hostOf7 is the host i-1, which serves run 7.
func hostOf7(f *fieldWorld) {
	f.host(serving("i-1"), lifecycle.Report{HeartbeatAt: time.Now(), Assignment: 4, Signal: lifecycle.SignalRegOK, Detail: "listening", Busy: true, CacheBytes: 9})
}

// goCache is the cache of the pool full, and heldCaches what a host has of it.
var (
	goCache    = cache.Spec{Name: "go", Paths: []string{"~/go"}, Size: 1 << 30}
	heldCaches = cache.ListOf(cache.Held{Key: goCache.Key(repository), Bytes: 8, CommittedAt: at(8)})
)

// hotHostWithCache is the host i-6, whose runner listens, with that cache.
func hotHostWithCache(f *fieldWorld) {
	r := pooled("i-6")
	r.Caches, r.TrustKey = heldCaches, repository
	f.host(r, lifecycle.Report{HeartbeatAt: time.Now(), Assignment: 1})
}

// dropped are the keys of caches that a host is to delete, and why another leaves.
func dropped(id, leaving string) func(*fieldWorld) any {
	return func(f *fieldWorld) any {
		r, err := f.store.Instance(f.t.Context(), id)
		f.must(err)
		l, err := f.store.Instance(f.t.Context(), leaving)
		f.must(err)
		return []any{r.DropCaches, r.ThrowCaches, l.RetiringReason}
	}
}

// instanceOf7 is that host as callers see it.
func instanceOf7() *remudav1.Instance {
	return &remudav1.Instance{
		InstanceId: "i-1", Pool: "full", State: remudav1.State_STATE_RUNNING, Repository: repository, RunId: "7", RunAttempt: 2, RequestId: "asked",
		Assignment: 4, Threshold: stamp(1), ResourceClass: "xlarge", UsageClass: remudav1.UsageClass_USAGE_CLASS_SPOT, InstanceType: "c6i.xlarge", Cpu: 4, MemoryMib: 8192,
		Zone: "eu-west-1a", Signal: remudav1.Signal_SIGNAL_UD_REG_OK, HeartbeatTime: recently, Busy: true, CreateTime: stamp(2), UpdateTime: stamp(3),
		Reason: "it serves", ReasonCode: "served", Labels: []string{"gpu"}, Healthy: true, HoldTime: stamp(4), Retiring: true, RetiringReason: "a new image", InterruptionTime: stamp(5), Detail: "listening",
		OrphanTime: stamp(6), IdleTime: stamp(7), CacheBytes: 9, StopTime: stamp(8), ResetTime: stamp(9),
		Caches: []*remudav1.HostCache{{Key: goCache.Key(repository), Name: "go", Bytes: 8, CommitTime: stamp(8)}},
	}
}

// pageToken is one of the store, for what follows a row of a list.
func pageToken(key ...string) string {
	for i := range key {
		key[i] = strconv.Quote(key[i])
	}
	return base64.RawURLEncoding.EncodeToString([]byte("[" + strings.Join(key, ",") + "]"))
}

// afterJ2 is for the jobs after j-2.
var afterJ2 = pageToken("jobs of a service", "2040-01-01T00:02:00.000000000", "j-2")

// anEvent is one of the host i-1.
func anEvent(f *fieldWorld) {
	f.must(f.store.AddEvents(f.t.Context(), []lifecycle.Event{{
		ID: "01", At: time.Now(), InstanceID: "i-1", Repository: repository, RunID: "7", RequestID: "asked", Assignment: 4,
		Action: lifecycle.ActionClaim, From: "idle (pooled)", To: "claimed", Reason: "a run asked", Code: "asked", Pool: "default",
	}}))
}

// jobOf7 is a job of run 7 that is over, and what its run's history has of it.
func jobOf7(f *fieldWorld) {
	f.must(f.store.CreateJob(f.t.Context(), lifecycle.Job{ID: 70, Repository: repository, RunID: "7", Pool: "full", State: lifecycle.JobDone, EndedAt: at(1), Version: 1}))
	f.must(f.store.AddEvents(f.t.Context(), []lifecycle.Event{{
		ID: "02", At: time.Now(), InstanceID: "i-1", Repository: repository, RunID: "7", RequestID: "asked", Assignment: 4,
		Action: lifecycle.ActionEndJob, Reason: "job 70 is over", Code: lifecycle.ReasonJobEnded, JobID: 70, JobName: "build\n(1)", Since: at(1),
	}}))
}

// jobHost is the host i-5 of a job pool, which runs job 70 of run 7.
func jobHost(f *fieldWorld) {
	ctx := f.t.Context()
	f.host(lifecycle.Record{
		HostKey: "i-5", InstanceID: "i-5", Pool: "full", State: lifecycle.StateRunning, RunID: "turn:full:3", Repository: repository, RequestID: "turn:full:3", JobsOf: repository,
		Threshold: at(1), CreatedAt: at(2), UpdatedAt: at(3), LaunchedAt: at(2),
	}, lifecycle.Report{HeartbeatAt: time.Now()})
	f.must(f.store.CreateJob(ctx, lifecycle.Job{
		ID: 70, Name: "build", Repository: repository, RunID: "7", RunAttempt: 2, Pool: "full", State: lifecycle.JobRunning, StartedAt: at(4), Version: 1,
	}))
	_, err := f.store.UpdateSlotTable(ctx, slots.Table{Pool: "full", Open: []slots.Slot{{Number: 3, JobID: 69, Runs: 70}}})
	f.must(err)
}

// instanceOf70 is that host as callers see it.
func instanceOf70() *remudav1.Instance {
	return &remudav1.Instance{
		InstanceId: "i-5", Pool: "full", State: remudav1.State_STATE_RUNNING, Repository: repository, RunId: "turn:full:3", RequestId: "turn:full:3",
		Threshold: stamp(1), CreateTime: stamp(2), UpdateTime: stamp(3), HeartbeatTime: recently, Healthy: true,
		Job: &remudav1.WorkflowJob{JobId: 70, Name: "build", Repository: repository, RunId: "7", RunAttempt: 2, Url: "https://github.com/" + repository + "/7/70", StartTime: stamp(4)},
	}
}

func eventOf7() *remudav1.Event {
	return &remudav1.Event{
		EventTime: recently, Action: remudav1.Action_ACTION_CLAIM, InstanceId: "i-1", Repository: repository, RunId: "7", RequestId: "asked", Assignment: 4,
		FromState: remudav1.State_STATE_IDLE, ToState: remudav1.State_STATE_CLAIMED, Reason: "a run asked", ReasonCode: "asked", Pool: "default",
	}
}

// stored is the request of run 9 as it is in the store, without what the fleet adds to it.
func stored(f *fieldWorld) any {
	page, err := f.store.RequestsOfRun(f.t.Context(), repository, "9")
	if err != nil || len(page) != 1 {
		return fmt.Sprint(len(page), err)
	}
	return lifecycle.Request{Repository: page[0].Repository, RunID: page[0].RunID, RequestID: page[0].RequestID, Spec: page[0].Spec}
}

// provisioned gets a run a host, or several.
func provisioned(run string, attempt, n int32) func(*fieldWorld) {
	return func(f *fieldWorld) {
		_, err := f.Provision(f.t.Context(), &remudav1.ProvisionRequest{
			Repository: repository, RunId: run, RunAttempt: proto.Int32(attempt), InstanceCount: proto.Int32(n), RequestId: fmt.Sprint("of-", run, "-", attempt),
		})
		f.must(err)
	}
}

// released gives all hosts of a run back.
func released(run string) func(*fieldWorld) {
	return func(f *fieldWorld) {
		_, err := f.Release(f.t.Context(), &remudav1.ReleaseRequest{Repository: repository, RunId: run, Wait: true})
		f.must(err)
	}
}

func inOrder(steps ...func(*fieldWorld)) func(*fieldWorld) {
	return func(f *fieldWorld) {
		for _, step := range steps {
			step(f)
		}
	}
}

// reasons are those of what was done to a host.
func reasons(id string) func(f *fieldWorld) any {
	return func(f *fieldWorld) any {
		history, err := f.store.EventsOfInstance(f.t.Context(), id, time.Time{}, time.Time{}, 10)
		f.must(err)
		var told []string
		for _, e := range history.Events {
			told = append(told, e.Reason)
		}
		return told
	}
}

// hotHost is the host i-2, which waits in the pool.
func hotHost(f *fieldWorld) {
	f.host(pooled("i-2"), lifecycle.Report{HeartbeatAt: time.Now(), Assignment: 1})
}

// stoppedHost is the host i-3, which no run has used and whose machine is stopped.
func stoppedHost(f *fieldWorld) {
	r := pooled("i-3")
	r.Standby, r.Stop = nil, &lifecycle.Stop{At: at(4), StoppedAt: at(5)}
	f.host(r, lifecycle.Report{})
}

// hotInstance is that host as callers see it.
func hotInstance() *remudav1.Instance {
	return &remudav1.Instance{
		InstanceId: "i-2", Pool: "full", State: remudav1.State_STATE_IDLE, Assignment: 1, Threshold: stamp(1), ResourceClass: "xlarge",
		UsageClass: remudav1.UsageClass_USAGE_CLASS_SPOT, HeartbeatTime: recently, PooledTime: stamp(2), RestingTime: stamp(3), CreateTime: stamp(2), Healthy: true, Hot: true,
	}
}

// paused has an operator pause the pool full.
func paused(f *fieldWorld) {
	_, err := f.store.UpdatePause(f.t.Context(), pause.Pause{Pool: "full", Since: at(1), By: "alice", Reason: "a new network"})
	f.must(err)
}

// pauseOf is the pause of a pool as it is stored, without its time.
func pauseOf(pool string) func(*fieldWorld) any {
	return func(f *fieldWorld) any {
		p, err := f.store.Pause(f.t.Context(), pool)
		f.must(err)
		p.Since, p.Until = time.Time{}, time.Time{} // now
		return p
	}
}

// threeJobs are that of work and two that wait.
func threeJobs(f *fieldWorld) {
	work(f)
	for i, id := range []string{"j-2", "j-3"} {
		f.must(f.store.CreateWork(f.t.Context(), model.Job{Service: "render", ID: id, State: model.JobWaiting, Payload: []byte("film"), CreatedAt: at(2 + i), DueAt: at(9), LogTail: "x"}))
	}
}

func waitingJob(id string) *remudav1.WorkerJob {
	minute := map[string]int{"j-2": 2, "j-3": 3}[id]
	return &remudav1.WorkerJob{JobId: id, Service: "render", State: remudav1.WorkerJobState_WORKER_JOB_STATE_WAITING, CreateTime: stamp(minute), Awaited: "AWAITED"}
}

// listed is a job as a list has it.
func listed(j *remudav1.WorkerJob) *remudav1.WorkerJob {
	j.Payload, j.LogTail = nil, ""
	return j
}

// work stores a job of the service render that has everything, and its worker.
func work(f *fieldWorld) {
	f.must(f.store.CreateWork(f.t.Context(), model.Job{
		Service: "render", ID: "j-1", State: model.JobRunning, Payload: []byte("film"), WorkerID: "w-1", Attempt: 2, CreatedAt: at(1), StartedAt: at(2), ActivityAt: at(3), EndedAt: at(4),
		Reason: "it runs", LogTail: "half\n", LogBytes: 5, DueAt: at(5),
	}))
	_, err := f.store.UpdateWorker(f.t.Context(), model.Worker{Service: "render", ID: "w-1", WorkerVersion: "1.0", HeartbeatAt: time.Now(), JobID: "j-1"})
	f.must(err)
}

func jobOfRender() *remudav1.WorkerJob {
	return &remudav1.WorkerJob{
		JobId: "j-1", Service: "render", State: remudav1.WorkerJobState_WORKER_JOB_STATE_RUNNING, Payload: []byte("film"), WorkerId: "w-1", Attempt: 2,
		CreateTime: stamp(1), StartTime: stamp(2), ActivityTime: stamp(3), EndTime: stamp(4), Reason: "it runs", LogTail: "half\n", LogBytes: 5, Awaited: "AWAITED",
	}
}

// film stores what was seen of the service film, and render's workers.
func film(f *fieldWorld) {
	queued, busy := 4, 5
	_, err := f.store.UpdateService(f.t.Context(), model.Service{
		Name: "film", Tasks: model.Tasks{Desired: 2, Running: 3}, Backlog: model.Backlog{Queued: &queued, Busy: &busy, More: true}, IdleChecks: 6, CheckedAt: at(1), Wanted: 7,
		Reason: "4 jobs wait", ReasonCode: "jobs_waiting",
	})
	f.must(err)
	for id, seen := range map[string]time.Time{"w-1": time.Now(), "w-2": time.Now().Add(-time.Hour)} {
		_, err := f.store.UpdateWorker(f.t.Context(), model.Worker{Service: "render", ID: id, WorkerVersion: "1.0", HeartbeatAt: seen})
		f.must(err)
	}
}

// manyWorkers are more workers of render than are counted.
func manyWorkers(f *fieldWorld) {
	for i := range 1001 {
		_, err := f.store.UpdateWorker(f.t.Context(), model.Worker{Service: "render", ID: fmt.Sprint("w-", i), WorkerVersion: "1.0", HeartbeatAt: time.Now()})
		f.must(err)
	}
}
