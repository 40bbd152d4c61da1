package fleet_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/cost"
	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/github"
	"github.com/remuda-ci/remuda/internal/instrument"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/policy/budget"
	"github.com/remuda-ci/remuda/internal/policy/price"
	"github.com/remuda-ci/remuda/internal/policy/runnerage"
	"github.com/remuda-ci/remuda/internal/server"
	"github.com/remuda-ci/remuda/internal/services"
	"github.com/remuda-ci/remuda/internal/services/model"
	"github.com/remuda-ci/remuda/internal/services/workqueue"
	"github.com/remuda-ci/remuda/internal/store"
	"github.com/remuda-ci/remuda/internal/telemetry"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// What the fleet of the recorded days has beside its pool of hosts.
const (
	dayService  = "render"
	daySpender  = "spender/tool" // a repository with a small budget
	dayJobsMost = 5
	// dayRunner is the version of the hosts' runners, and dayNewRunner the one that followed.
	dayRunner, dayNewRunner = "2.330.0", "2.331.0"
)

// recordedDay is a day of a fleet that has all that has metrics: a job pool, budgets, a service on ECS with a job queue, and people who look at it.
type recordedDay struct {
	*workday
	tasks *dayTasks
	web   *dayWeb
	reads remudav1.FleetServiceClient

	// What goes wrong: how far the clock is off, whether EC2 lists machines, what GitHub's API still takes, and why machines ended.
	clockOff  time.Duration
	ec2Away   bool
	remaining int
	ends      map[string]string
	jobs      int64
}

// newRecordedDay is a day whose runners' version was followed by another one at a time.
func newRecordedDay(t *testing.T, warm *fleet.WarmPool, newRunnerAt time.Time) *recordedDay {
	t.Helper()
	d := &recordedDay{
		workday: &workday{hosts: map[string]*dayHost{}, version: dayRunner, tolerant: true, scrapes: &scrapes{metrics: telemetry.NewMetrics(), values: map[string][]string{}, faults: map[string]faultTimes{}}},
		tasks:   &dayTasks{busyUntil: map[string]time.Time{}}, remaining: 4000, ends: map[string]string{},
	}
	counted := func(s store.Store) store.Store { return s.Observed(d.scrapes.calls("store").Called) }
	var h *hub
	d.world = newWorld(t, append(d.options(warm, counted), func(o *fleet.Options) {
		h = newHub(o.GitHub.(*fakeGitHub))
		h.github.deleting = h.deleted
		withJobs(o, h, dayJobsMost)
		d.more(o, newRunnerAt)
	})...)
	d.hub = h
	d.web = newDayWeb(t, d)
	d.hub.hear = d.web.deliver
	d.fleet.ServeJobsWith(func(_ string, op fleet.Op) { d.drive(op, func(time.Time) {}) })
	d.watch()
	d.serve(t)
	return d
}

// more adds to the options what a workday has not.
func (d *recordedDay) more(o *fleet.Options, newRunnerAt time.Time) {
	o.Compute = dayCloud{o.Compute, d}
	o.ClockOffset = func() time.Duration { return d.clockOff }
	dollars := cost.Current.Machine
	o.Prices = &price.List{Own: []price.Price{
		{InstanceType: "*", UsageClass: lifecycle.UsageSpot, Dollars: dollars * 0.4}, {InstanceType: "*", Dollars: dollars},
	}}
	o.Budgets = budget.List{{Owner: "grafana", Dollars: 5000, WarnPercent: 80}, {Repository: daySpender, Dollars: dollars}}
	o.Releases = func(context.Context) ([]runnerage.Release, error) {
		return []runnerage.Release{{Version: dayRunner, PublishedAt: newRunnerAt.AddDate(0, 0, -30)}, {Version: dayNewRunner, PublishedAt: newRunnerAt}}, nil
	}
	rows := o.Store.(wakingStore).Store
	o.Workers = &workqueue.Options{Store: rows, Services: map[string]model.JobPolicy{dayService: {QueueTime: 6 * time.Hour}}}
	o.Services = &services.Options{
		Store: rows, Scaler: instrument.Scaler{Scaler: d.tasks, Calls: d.scrapes.calls("services")},
		Services: map[string]services.Service{dayService: {
			Name: dayService, Region: "eu-west-1", Cluster: "runners", ECSService: dayService, Backlog: workqueue.Backlog{Store: rows, AtMost: 1000},
			Policy: policy.ServicePolicy{Maximum: 4, BacklogPerRunner: 2, IdleChecks: 5},
		}},
	}
	d.scrapes.observe(o)
}

// watch has the gauges count what there is, as controld does.
func (d *recordedDay) watch() {
	d.scrapes.gauges = &instrument.HostGauges{
		Store: d.store, Jobs: d.store, Guards: d.store, WhyWaits: d.fleet.WhyWaits, Requests: d.fleet.WaitingRequests, Services: d.fleet.Services,
		JobPools: []string{jobPool}, Pools: []string{"default", jobPool}, CostBudgets: d.fleet.Budgets,
		Budgets:     func() []github.Budget { return []github.Budget{{Credential: "app", Remaining: d.remaining}} },
		ClockOffset: func() time.Duration { return d.clockOff },
		Price: func(_, usageClass string) (float64, bool, bool) {
			return cost.Current.Machine, false, usageClass != string(lifecycle.UsageSpot)
		},
		Metrics: d.scrapes.metrics, Log: hclog.NewNullLogger(),
	}
}

// serve has the calls of people answered, as over the network.
func (d *recordedDay) serve(t *testing.T) {
	t.Helper()
	s, err := server.New(server.Options{Fleet: d.fleet, Metrics: d.scrapes.metrics, Ready: func(context.Context) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	d.reads = remudav1.NewFleetServiceClient(s.Viewer("an operator"))
}

// dayCloud is the cloud of a recorded day.
type dayCloud struct {
	fleet.Compute
	day *recordedDay
}

// List fails while EC2 is away.
func (c dayCloud) List(ctx context.Context, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Machine], error) {
	if c.day.ec2Away {
		return lifecycle.Page[lifecycle.Machine]{}, &lifecycle.UnavailableError{What: "ec2", Err: context.DeadlineExceeded}
	}
	return c.Compute.List(ctx, page)
}

// Describe says why a machine ended.
func (c dayCloud) Describe(ctx context.Context, ids []string) ([]lifecycle.Machine, error) {
	machines, err := c.Compute.Describe(ctx, ids)
	for i, m := range machines {
		machines[i].EndReason = c.day.ends[m.InstanceID]
	}
	return machines, err
}

// dayTasks are the tasks of a service on ECS, which start within a minute.
type dayTasks struct {
	desired, running int
	// stuck: ECS starts none.
	stuck bool
	// busyUntil is when a task is done with its job.
	busyUntil map[string]time.Time
}

// Describe says how many there are.
func (s *dayTasks) Describe(_ context.Context, names []string) map[string]model.Observation {
	all := map[string]model.Observation{}
	for _, name := range names {
		all[name] = model.Observation{Tasks: model.Tasks{Desired: s.desired, Running: s.running, Pending: max(0, s.desired-s.running)}}
	}
	return all
}

// SetDesired says how many there should be.
func (s *dayTasks) SetDesired(_ context.Context, _ string, desired int) error {
	s.desired = desired
	return nil
}

// settle starts and stops tasks.
func (s *dayTasks) settle() {
	if !s.stuck || s.desired < s.running {
		s.running = s.desired
	}
}

// everyMinute is what goes on all day: the service is looked at, its tasks work, and every five minutes an operator looks.
func (d *recordedDay) everyMinute(now time.Time) {
	d.drive(d.fleet.NewServiceSweep(), func(time.Time) {})
	d.tasks.settle()
	for i := range d.tasks.running {
		d.taskWorks(fmt.Sprintf("task-%d", i), now)
	}
	if now.Minute()%5 == 0 && !now.Before(d.stoppedUntil) {
		d.look5(now)
	}
	d.after(time.Minute, d.everyMinute)
}

// taskWorks has a task say that it lives, take a job, if it has none and one waits, and be done with it four minutes later.
func (d *recordedDay) taskWorks(id string, now time.Time) {
	if _, err := d.fleet.HearWorker(d.t.Context(), dayService, id, "1.0", now); err != nil {
		d.t.Fatalf("hear a worker: %v", err)
	}
	if now.Before(d.tasks.busyUntil[id]) {
		return
	}
	j, ok, err := d.fleet.ClaimWork(d.t.Context(), dayService, id, "1.0", now)
	if err != nil {
		d.t.Fatalf("claim work: %v", err)
	}
	if !ok {
		return
	}
	d.tasks.busyUntil[id] = now.Add(4 * time.Minute)
	d.after(4*time.Minute, func(now time.Time) {
		if _, err := d.fleet.FinishWork(d.t.Context(), dayService, j.ID, model.JobAttempt{WorkerID: j.WorkerID, Number: j.Attempt}, true, "", now); err != nil {
			d.t.Fatalf("finish work: %v", err)
		}
	})
}

// look5 is what an operator asks for, with a host that the fleet does not have.
func (d *recordedDay) look5(time.Time) {
	ctx := d.t.Context()
	_, err := d.reads.ListPools(ctx, &remudav1.ListPoolsRequest{})
	if err == nil {
		_, err = d.reads.ListInstances(ctx, &remudav1.ListInstancesRequest{})
	}
	if err == nil {
		_, err = d.reads.ListWaiting(ctx, &remudav1.ListWaitingRequest{})
	}
	if err != nil {
		d.t.Errorf("an operator's look: %v", err)
	}
	if _, err := d.reads.GetInstance(ctx, &remudav1.GetInstanceRequest{InstanceId: "i-0"}); err == nil {
		d.t.Error("there is a host that no cloud has")
	}
}

// queueJobs queues jobs for the job pool that take so long.
func (d *recordedDay) queueJobs(count int, takes time.Duration, labels ...string) {
	for range count {
		d.jobs++
		j := poolJob(d.jobs, time.Now().Truncate(time.Second))
		if len(labels) > 0 {
			j.Labels = labels
		}
		d.hub.queue(d.t.Context(), j, takes)
	}
}

// lose has the machine of an idle host of a pool end without an order.
func (d *recordedDay) lose(pool, why string) {
	idle := slices.DeleteFunc(d.records(lifecycle.StateIdle), func(r lifecycle.Record) bool { return r.Pool != pool || !r.Pooled() })
	if len(idle) == 0 {
		d.t.Fatalf("pool %s has no idle host to lose", pool)
	}
	d.ends[idle[0].InstanceID] = why
	d.compute.Kill(idle[0].InstanceID)
	delete(d.hosts, idle[0].HostKey)
}

// submitWork gives the service jobs.
func (d *recordedDay) submitWork(id string, count int) {
	for i := range count {
		if _, err := d.fleet.SubmitWork(d.t.Context(), dayService, fmt.Sprintf("%s-%d", id, i), []byte("{}"), time.Now()); err != nil {
			d.t.Fatalf("submit work: %v", err)
		}
	}
}
