package main

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/fleethold"
	"github.com/remuda-ci/remuda/internal/lifecycle/meter"
	"github.com/remuda-ci/remuda/internal/lifecycle/pause"
	"github.com/remuda-ci/remuda/internal/lifecycle/slots"
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/policy/budget"
	"github.com/remuda-ci/remuda/internal/policy/price"
	"github.com/remuda-ci/remuda/internal/store/memory"
)

// noon is the time of the fleet that a snapshot is taken of, and before is so long ago then.
var noon = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

func before(d time.Duration) time.Time { return noon.Add(-d) }

// secret is in the records: no snapshot has it.
const secret = "AABBCC-registration-token"

// machines are EC2, and runners GitHub.
type machines struct {
	fleet.Compute
	all []lifecycle.Machine
	err error
}

func (m *machines) List(context.Context, lifecycle.PageOf) (lifecycle.Page[lifecycle.Machine], error) {
	return lifecycle.Page[lifecycle.Machine]{Items: m.all}, nil
}

func (m *machines) Describe(_ context.Context, ids []string) ([]lifecycle.Machine, error) {
	var found []lifecycle.Machine
	for _, id := range ids {
		i := slices.IndexFunc(m.all, func(one lifecycle.Machine) bool { return one.InstanceID == id })
		if i < 0 {
			found = append(found, lifecycle.Machine{InstanceID: id, State: lifecycle.MachineGone})
			continue
		}
		found = append(found, m.all[i])
	}
	return found, m.err
}

type runners struct {
	fleet.GitHub
	fleet.GitHubJobs
	all []lifecycle.Runner
	err error
}

func (r *runners) Runners(context.Context, string, lifecycle.PageOf) (lifecycle.Page[lifecycle.Runner], error) {
	return lifecycle.Page[lifecycle.Runner]{Items: r.all}, r.err
}

func (r *runners) FindRunner(_ context.Context, _, name string) (lifecycle.Runner, error) {
	for _, one := range r.all {
		if one.Name == name {
			return one, r.err
		}
	}
	return lifecycle.Runner{}, lifecycle.ErrNotFound
}

func (r *runners) Runner(_ context.Context, _ string, id int64) (lifecycle.Runner, error) {
	return lifecycle.Runner{}, lifecycle.ErrNotFound
}

type noQueue struct{ fleet.Queue }

// host is a record of a host that was launched an hour ago.
func host(id string, state lifecycle.State, change func(*lifecycle.Record)) lifecycle.Record {
	r := lifecycle.Record{
		HostKey: id, InstanceID: id, Pool: "default", State: state, Assignment: 1, LaunchedAt: before(time.Hour), CreatedAt: before(time.Hour),
		UpdatedAt: before(20 * time.Minute), DueAt: noon.Add(time.Minute), Threshold: noon.Add(time.Hour), Reason: "as it is", ReasonCode: lifecycle.ReasonAgentBusy,
		Hardware: lifecycle.Hardware{ResourceClass: "large", UsageClass: lifecycle.UsageSpot, InstanceType: "m7g.large", CPU: 2, MemoryMiB: 8192, Zone: "eu-west-1a"},
		Meter:    meter.Begin(before(time.Hour)),
	}
	change(&r)
	return r
}

// aFleet has a host in each state, a job pool with a line, runs that wait, a pool that is paused, a hold and costs.
func aFleet(t *testing.T) (fleet.Options, *machines, *runners) {
	t.Helper()
	s := memory.New(func() time.Time { return noon })
	cloud, hub := &machines{}, &runners{}
	run := func(r *lifecycle.Record, id string) {
		r.Repository, r.RunID, r.RequestID, r.Workflow, r.TrustKey, r.Uses = "acme/shop", id, "request-"+id, "build", "acme/shop", 1
		r.RunnerName = "remuda-1-" + r.InstanceID
	}
	for i, r := range []lifecycle.Record{
		host("i-created", lifecycle.StateCreated, func(r *lifecycle.Record) {
			run(r, "41")
			r.Registration = &lifecycle.Registration{Kind: lifecycle.RegistrationToken, URL: "https://github.com/acme/shop", Secret: secret, ExpiresAt: noon.Add(time.Hour)}
		}),
		host("i-busy", lifecycle.StateRunning, func(r *lifecycle.Record) { run(r, "40") }),
		host("i-quiet", lifecycle.StateRunning, func(r *lifecycle.Record) { run(r, "40") }),
		host("i-held", lifecycle.StateRunning, func(r *lifecycle.Record) { run(r, "40"); r.Hold = noon.Add(2 * time.Hour) }),
		host("i-orphan", lifecycle.StateRunning, func(r *lifecycle.Record) { run(r, "40"); r.OrphanAt = before(10 * time.Minute) }),
		host("i-interrupted", lifecycle.StateRunning, func(r *lifecycle.Record) { run(r, "40"); r.InterruptionAt = noon.Add(time.Minute) }),
		host("i-pooled", lifecycle.StateIdle, func(r *lifecycle.Record) { r.TrustKey, r.Uses, r.PooledAt = "acme/shop", 3, before(time.Minute) }),
		host("i-hot", lifecycle.StateIdle, func(r *lifecycle.Record) {
			r.Repository, r.TrustKey, r.Uses, r.PooledAt, r.RunnerName = "acme/shop", "acme/shop", 1, before(time.Minute), "remuda-1-i-hot"
			r.Standby = &lifecycle.Standby{Assignment: 1, Label: secret, RunnerID: 9}
		}),
		host("i-fresh", lifecycle.StateIdle, func(r *lifecycle.Record) { r.PooledAt = before(time.Minute) }),
		host("i-job", lifecycle.StateRunning, func(r *lifecycle.Record) {
			run(r, "turn:jobs:1")
			r.Pool, r.JobsOf, r.RequestID = "jobs", "acme/shop", "turn:jobs:1"
		}),
		host("i-ending", lifecycle.StateTerminated, func(r *lifecycle.Record) { r.Threshold = time.Time{} }),
		host("i-ended", lifecycle.StateTerminated, func(r *lifecycle.Record) {
			r.Threshold, r.DueAt, r.ExpiresAt = time.Time{}, time.Time{}, noon.Add(time.Hour)
		}),
	} {
		check(t, s.CreateInstance(t.Context(), r))
		if r.RunnerName != "" && r.InstanceID != "i-orphan" {
			hub.all = append(hub.all, lifecycle.Runner{ID: int64(i + 1), Name: r.RunnerName, Online: true, Busy: r.InstanceID == "i-busy"})
		}
		if r.State != lifecycle.StateTerminated {
			cloud.all = append(cloud.all, lifecycle.Machine{InstanceID: r.InstanceID, HostKey: r.HostKey, State: lifecycle.MachineRunning, Hardware: r.Hardware, Bypass: r.InstanceID == "i-quiet"})
			check(t, s.ForHost(r.HostKey).PutReport(t.Context(), lifecycle.Report{
				HeartbeatAt: before(5 * time.Second), Assignment: 1, RunID: r.RunID, Signal: lifecycle.SignalRegOK, Busy: r.InstanceID == "i-busy", Detail: "all is well",
			}))
		}
		check(t, s.AddEvents(t.Context(), []lifecycle.Event{{
			At: before(time.Duration(40-i) * time.Minute), InstanceID: r.InstanceID, Repository: r.Repository, RunID: r.RunID, Action: lifecycle.ActionKeep,
			From: "created", To: string(r.State), Reason: "it became so", Assignment: 1,
		}}))
	}
	check(t, s.AddEvents(t.Context(), []lifecycle.Event{
		{At: before(9 * time.Minute), InstanceID: "i-fresh", Repository: "-", RunID: "warm:default", Action: lifecycle.ActionLaunch, Reason: "launched ahead of need", Assignment: 1},
		{At: before(8 * time.Minute), InstanceID: "i-ended", Repository: "acme/shop", RunID: "spare:jobs:9", Action: lifecycle.ActionLaunch, Reason: "launched for a spare", Assignment: 1},
	}))
	runsAndJobs(t, s)
	guardsAndCosts(t, s)
	return options(t, s, cloud, hub), cloud, hub
}

func runsAndJobs(t *testing.T, s *memory.Store) {
	t.Helper()
	spec := lifecycle.Spec{RunAttempt: 1, Count: 2, MinimumCount: 1, Pool: "default", ResourceClass: "large", UsageClass: lifecycle.UsageSpot, Timeout: 10 * time.Minute}
	for _, q := range []lifecycle.Request{
		{RunID: "41", RequestID: "request-41", Taken: []lifecycle.Taken{{HostKey: "i-created"}}, DueAt: noon.Add(10 * time.Second)},
		{RunID: "40", RequestID: "request-40", Outcome: lifecycle.OutcomeReady},
		{RunID: "39", RequestID: "request-39", Kind: lifecycle.RequestByCaller, Shortage: "no capacity", DueAt: noon.Add(10 * time.Second)},
		{RunID: "turn:jobs:2", RequestID: "turn:jobs:2", Kind: lifecycle.RequestForSlot, DueAt: noon.Add(10 * time.Second)},
	} {
		q.Repository, q.Spec, q.CreatedAt, q.Deadline = "acme/shop", spec, before(5*time.Minute), noon.Add(5*time.Minute)
		check(t, s.CreateRequest(t.Context(), q))
	}
	for id, state := range map[int64]lifecycle.JobState{7: lifecycle.JobRunning, 8: lifecycle.JobWaiting, 9: lifecycle.JobWaiting} {
		j := lifecycle.Job{
			ID: id, Repository: "acme/shop", RunID: "50", RunAttempt: 1, Name: fmt.Sprint("test (", id, ")"), Labels: []string{"jobs"}, Pool: "jobs", Scope: "acme/shop",
			State: state, QueuedAt: before(time.Duration(id) * time.Minute), DueAt: noon.Add(time.Minute),
		}
		if state == lifecycle.JobRunning {
			j.RunnerName, j.StartedAt = "remuda-1-i-job", before(time.Minute)
		}
		check(t, s.CreateJob(t.Context(), j))
	}
	_, err := s.UpdateSlotTable(t.Context(), slots.Table{Pool: "jobs", Assigned: 2, Open: []slots.Slot{
		{Number: 1, JobID: 7, Repository: "acme/shop", Scope: "acme/shop", AssignedAt: before(5 * time.Minute), HostKey: "i-job", Runner: "remuda-1-i-job", Started: true, Runs: 7},
		{Number: 2, JobID: 8, Repository: "acme/shop", Scope: "acme/shop", AssignedAt: before(time.Minute)},
	}})
	check(t, err)
}

func guardsAndCosts(t *testing.T, s *memory.Store) {
	t.Helper()
	_, err := s.UpdatePause(t.Context(), pause.Pause{Pool: "jobs", Since: before(time.Minute), By: "CN=ops", Reason: "a new image"})
	check(t, err)
	_, err = s.UpdateFleetHold(t.Context(), fleethold.Hold{Until: noon.Add(time.Hour), SetAt: before(time.Hour), By: "CN=ops", Reason: "a look"})
	check(t, err)
	for day := 1; day <= 20; day++ {
		at := noon.AddDate(0, 0, -day)
		c := meter.Cycle{
			From: meter.At(at), Launched: true, ClaimedAt: meter.At(at), ReadyAt: meter.At(at.Add(time.Minute)), ReleasedAt: meter.At(at.Add(time.Hour)),
			EndedAt: meter.At(at.Add(time.Hour + time.Minute)), User: meter.User{Repository: "acme/shop", Workflow: "build", RunID: fmt.Sprint(day), Attempt: 1},
		}
		r := meter.NewReading("i-old", meter.Host{Pool: "default", ResourceClass: "large", UsageClass: "spot", InstanceType: "m7g.large"}, c)
		check(t, s.CreateReading(t.Context(), r))
		job, ok := meter.NewJobTime(meter.JobTime{Job: meter.Job{ID: int64(day), Title: "test"}, InstanceID: "i-old", Repository: "acme/shop", RunID: fmt.Sprint(day)},
			at.Add(2*time.Minute), at.Add(40*time.Minute))
		if !ok {
			t.Fatalf("job %d has no time", day)
		}
		check(t, s.CreateJobTime(t.Context(), job))
		calls := meter.NewCallsOfDay(r.Day, "controld-1")
		calls.Services = []meter.Calls{{Service: "dynamodb", Requests: 1e6, HalfReads: 9e5, Writes: 1e5}, {Service: "sqs", Requests: 1e5}}
		_, err = s.UpdateCallsOfDay(t.Context(), calls)
		check(t, err)
		if day > 3 {
			_, err := s.UpdateDay(t.Context(), meter.SumUp(r.Day, []meter.Reading{r}))
			check(t, err)
		}
	}
}

func options(t *testing.T, s *memory.Store, cloud *machines, hub *runners) fleet.Options {
	t.Helper()
	daily, err := policy.ParsePeriod("* * 9-17 * * *", "Europe/Amsterdam", 2, policy.EvictOldest)
	check(t, err)
	numbers := lifecycle.DefaultPolicy()
	numbers.Reuse = lifecycle.ReuseSameRepository
	maximum := 20
	of := func(name string) fleet.Pool {
		return fleet.Pool{Name: name, ResourceClasses: []string{"large"}, UsageClasses: lifecycle.UsageClasses, InstanceTypes: []string{"m7g.*"}, Policy: numbers}
	}
	standard := of("default")
	standard.Maximum, standard.Privileged = &maximum, true
	standard.Warm = &fleet.WarmPool{Policy: policy.WarmPolicy{MinimumIdle: 1, Schedules: []policy.Period{daily}, Lead: time.Minute}}
	return fleet.Options{
		Store: s, Guards: s, Queue: noQueue{}, Compute: cloud, GitHub: hub, Replica: "test",
		Pools: map[string]fleet.Pool{"default": standard, "jobs": of("jobs")}, Classes: map[string]fleet.Class{"large": {CPU: 2, MemoryMiB: 4096}},
		Jobs: &fleet.JobOptions{
			Store: s, GitHub: hub, Pools: map[string]fleet.JobPool{"jobs": {JobPool: policy.JobPool{Maximum: 2}}},
			URL: func(repository, run string, id int64) string {
				return fmt.Sprintf("https://github.com/%s/actions/runs/%s/job/%d", repository, run, id)
			},
		},
		Prices: &price.List{Own: []price.Price{{InstanceType: "m7g.large", UsageClass: lifecycle.UsageSpot, Dollars: 0.03}}, SpotShare: 0.4, Region: "eu-west-1",
			Calls: []price.CallPrice{{Unit: price.QueueRequest, Region: "eu-west-1", Dollars: 7}}},
		CallsMade: func() []meter.Calls { return nil },
		Budgets:   budget.List{{Repository: "acme/shop", Dollars: 1, WarnPercent: 50}, {Owner: "acme", Dollars: 10}},
		ScaleDown: &fleet.ScaleDown{GitHub: hub, Every: 3 * time.Minute, Policy: policy.ScaleDown{
			Idle: []policy.Period{daily}, IdleConfirmation: 2 * time.Minute, MinimumRunning: policy.ByOS{"linux": time.Minute},
		}},
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
