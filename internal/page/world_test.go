package page_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc/stats"

	compute "github.com/remuda-ci/remuda/internal/compute/memory"
	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/meter"
	"github.com/remuda-ci/remuda/internal/page"
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/policy/budget"
	"github.com/remuda-ci/remuda/internal/policy/price"
	queue "github.com/remuda-ci/remuda/internal/queue/memory"
	"github.com/remuda-ci/remuda/internal/server"
	"github.com/remuda-ci/remuda/internal/store"
	"github.com/remuda-ci/remuda/internal/store/memory"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

const repository = "acme/shop"

// world is a page over a real server and its use cases.
type world struct {
	t     testing.TB
	store store.Store
	// report stores what the agent of a host says.
	report func(context.Context, lifecycle.Report) error
	// judged is what a scale-down is planned for.
	judged  policy.Snapshot
	options page.Options
	handler http.Handler
	// ago is how long ago the fleet was as fill has it.
	ago time.Duration
}

// newWorld has a store in memory.
func newWorld(t testing.TB, change func(*page.Options)) *world {
	t.Helper()
	w := &world{t: t}
	w.inMemory()
	w.serve(nil, change)
	return w
}

func (w *world) inMemory() {
	s := memory.New(time.Now)
	w.store = s.Store
	w.report = func(ctx context.Context, r lifecycle.Report) error { return s.ForHost(r.HostKey).PutReport(ctx, r) }
}

// serve begins to serve the page, with a handler of traces or nil.
func (w *world) serve(traces stats.Handler, change func(*page.Options)) {
	w.t.Helper()
	machines, err := compute.New(compute.Options{})
	w.must(err)
	patient := lifecycle.DefaultPolicy()
	patient.Silence = time.Hour // no slow browser outlasts it
	f, err := fleet.New(fleet.Options{
		Store: w.store, Guards: w.store, Queue: queue.New(time.Now), Compute: machines, GitHub: struct{ fleet.GitHub }{}, Replica: "test",
		Pools: map[string]fleet.Pool{"default": {
			Name: "default", ResourceClasses: []string{"large"}, UsageClasses: lifecycle.UsageClasses, Policy: patient,
		}, "jobs": {Name: "jobs", ResourceClasses: []string{"large"}, UsageClasses: lifecycle.UsageClasses, Policy: patient}},
		Classes:   map[string]fleet.Class{"large": {CPU: 2, MemoryMiB: 4096}},
		ScaleDown: &fleet.ScaleDown{GitHub: struct{ fleet.Registrations }{}, PlanOnly: true, Taken: func() (policy.Snapshot, []op.Decided) { return w.judged, nil }},
		CallsMade: func() []meter.Calls { return nil },
		Prices:    &price.List{Own: []price.Price{{InstanceType: "*", Dollars: 1}}},
		Budgets:   budget.List{{Repository: repository, Dollars: 1, WarnPercent: 50}},
		Jobs: &fleet.JobOptions{Store: w.store, GitHub: struct{ fleet.GitHubJobs }{}, Pools: map[string]fleet.JobPool{
			"jobs": {JobPool: policy.JobPool{Maximum: 2}, Labels: []string{"small"}},
		}},
	})
	w.must(err)
	s, err := server.New(server.Options{Fleet: f, StatsHandler: traces})
	w.must(err)
	o := page.Options{Fleet: remudav1.NewFleetServiceClient(s.Viewer("the page")), Version: "1.2.3", Log: hclog.NewNullLogger()}
	change(&o)
	w.options = o
	w.restart()
}

// restart has a page that was not looked at yet.
func (w *world) restart() {
	w.t.Helper()
	var err error
	w.handler, err = page.New(w.options)
	w.must(err)
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) call(c call) *httptest.ResponseRecorder {
	w.t.Helper()
	got := httptest.NewRecorder()
	w.handler.ServeHTTP(got, c.request(w.t))
	return got
}

// see is what a caller on this machine sees below a path.
func (w *world) see(path string) *httptest.ResponseRecorder {
	w.t.Helper()
	c := here()
	c.path = path
	return w.call(c)
}

// instanceID is that of host n, as EC2 writes them.
func instanceID(n int) string { return fmt.Sprintf("i-%017x", n) }

// tails are how long ago hosts came into their states.
var tails = map[lifecycle.State]time.Duration{
	lifecycle.StateRunning: 25 * time.Minute, lifecycle.StateIdle: 6 * time.Minute, lifecycle.StateClaimed: time.Minute, lifecycle.StateCreated: time.Minute,
	lifecycle.StateTerminated: 40 * time.Minute,
}

// dayOf is the history of host n until it came into its state: it was launched and has served nine runs, and the last one is runOf(n).
func dayOf(n int, state lifecycle.State, now time.Time) (events []lifecycle.Event) {
	at, run := now, fmt.Sprint(20_000+n/3*10)
	add := func(after time.Duration, action lifecycle.Action, from, to, reason string) {
		at = at.Add(after)
		events = append(events, lifecycle.Event{
			At: at, InstanceID: instanceID(n), Repository: repository, RunID: run, Action: action, From: from, To: to, Reason: reason,
		})
	}
	pool := func() {
		add(time.Duration(20+n%5*10)*time.Minute, lifecycle.ActionPool, "running", "idle (pooled)", "deregistered and clean")
	}
	claim := func(by string) {
		run = by
		add(time.Duration(30+n%3*15)*time.Minute, lifecycle.ActionClaim, "idle (pooled)", "claimed", "claimed for run "+run)
	}
	ready := func(from string) {
		add(2*time.Minute, lifecycle.ActionReady, from, "running", "registered for run "+run)
	}
	if state == lifecycle.StateCreated {
		run = runOf(n)
	}
	add(0, lifecycle.ActionLaunch, "", "created", "launched for run "+run)
	if state != lifecycle.StateCreated {
		ready("created")
		for i := range 7 {
			pool()
			claim(fmt.Sprint(20_001 + n/3*10 + i))
			ready("claimed")
		}
		pool()
		claim(runOf(n))
	}
	if state == lifecycle.StateRunning || state == lifecycle.StateIdle || state == lifecycle.StateTerminated {
		ready("claimed")
	}
	switch state {
	case lifecycle.StateIdle:
		pool()
	case lifecycle.StateTerminated:
		add(30*time.Minute, lifecycle.ActionTerminate, "running", "terminated", "it reached its maximum age")
	}
	late := at.Sub(now) + tails[state] + time.Duration(n%7)*time.Minute
	for i := range events {
		events[i].At = events[i].At.Add(-late)
	}
	return events
}

// runOf is the run that host n serves, or served last.
func runOf(n int) string { return fmt.Sprint(1000 + n/3) }

// jobsOf are the first request of a run and its jobs: one is over, and one runs.
func jobsOf(run string, now time.Time) []lifecycle.Event {
	at := func(minutes int) time.Time { return now.Add(-time.Duration(minutes) * time.Minute) }
	of := func(e lifecycle.Event) lifecycle.Event {
		e.Repository, e.RunID = repository, run
		return e
	}
	return []lifecycle.Event{
		of(lifecycle.Event{At: at(25), RequestID: "4f9c2b6e", Action: lifecycle.ActionSettle, Reason: "2 of 2 hosts are ready", Since: at(28)}),
		of(lifecycle.Event{At: at(24), JobID: 1, JobName: "build", Action: lifecycle.ActionStartJob, Reason: `job 1 "build" started on ` + instanceID(0) + ", 4m0s after it was queued", Since: at(28)}),
		of(lifecycle.Event{At: at(9), JobID: 1, JobName: "build", Action: lifecycle.ActionEndJob, Reason: `job 1 "build" is over: success after 15m0s on ` + instanceID(0), Since: at(24)}),
		of(lifecycle.Event{At: at(8), JobID: 2, JobName: "test (shard 1 of 3)", Action: lifecycle.ActionStartJob, Reason: `job 2 "test (shard 1 of 3)" started on ` + instanceID(0) + ", 1m0s after it was queued", Since: at(9)}),
	}
}

// judge has host n judged by the scale-down: half of the hosts are busy, and some of the others have been idle for long enough to end.
func (w *world) judge(n int, now time.Time) {
	busy := n%2 == 0
	c := policy.Candidate{InstanceID: instanceID(n), LaunchedAt: now.Add(-12 * time.Hour), Owner: repository, Scope: "repository", OS: "linux", RunnerID: int64(n + 1), AgentBusy: &busy, AgentSeenAt: now}
	if n%4 == 1 {
		c.IdleDetectedAt = now.Add(-20 * time.Minute)
	}
	w.judged.Now, w.judged.Policy.IdleConfirmation = now, 10*time.Minute
	w.judged.Instances = append(w.judged.Instances, policy.SnapshotInstance{Candidate: c, State: "running"})
	w.judged.Runners = append(w.judged.Runners, policy.SnapshotRunner{Runner: policy.Runner{ID: int64(n + 1), Name: "remuda-1-" + instanceID(n), Owner: repository, Status: "online", Busy: busy}, Listed: true})
}

// fill stores so many hosts in all states, a third as many that have ended, what their agents say, and the history of a day.
func (w *world) fill(hosts int) {
	w.t.Helper()
	ctx, now := context.Background(), time.Now().Add(-w.ago)
	states := []lifecycle.State{lifecycle.StateRunning, lifecycle.StateIdle, lifecycle.StateClaimed, lifecycle.StateCreated}
	events := jobsOf(runOf(0), now)
	for n := range hosts + hosts/3 {
		state := lifecycle.StateTerminated
		if n < hosts {
			state = states[n%len(states)]
		}
		events = append(events, dayOf(n, state, now)...)
		r := lifecycle.Record{
			HostKey: instanceID(n), InstanceID: instanceID(n), Pool: "default", State: state, Assignment: 1, Version: 1,
			Hardware:   lifecycle.Hardware{ResourceClass: "large", UsageClass: lifecycle.UsageOnDemand, InstanceType: "c6i.large", Zone: "eu-west-1a"},
			LaunchedAt: now.Add(-12 * time.Hour), CreatedAt: now.Add(-12 * time.Hour), UpdatedAt: now.Add(-tails[state]), Threshold: now.Add(time.Hour), DueAt: now.Add(time.Hour),
		}
		if state == lifecycle.StateCreated {
			r.LaunchedAt, r.CreatedAt = now.Add(-tails[state]), now.Add(-tails[state])
		}
		switch state {
		case lifecycle.StateIdle:
			r.PooledAt = now.Add(-tails[state])
		case lifecycle.StateTerminated:
			r.Threshold, r.DueAt = time.Time{}, time.Time{}
		default:
			r.Repository, r.RunID, r.RequestID = repository, runOf(n), "asked"
		}
		w.must(w.store.CreateInstance(ctx, r))
		if n < hosts {
			w.judge(n, now)
			w.must(w.report(ctx, lifecycle.Report{HostKey: r.HostKey, HeartbeatAt: time.Now(), Assignment: 1, Signal: lifecycle.SignalRegOK, Busy: n%8 == 0}))
		}
	}
	slices.SortFunc(events, func(a, b lifecycle.Event) int { return a.At.Compare(b.At) })
	for len(events) > 0 {
		most := min(500, len(events))
		w.must(w.store.AddEvents(ctx, events[:most]))
		events = events[most:]
	}
}
