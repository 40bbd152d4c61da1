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
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/meter"
	"github.com/remuda-ci/remuda/internal/page"
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/policy/budget"
	"github.com/remuda-ci/remuda/internal/policy/price"
	queue "github.com/remuda-ci/remuda/internal/queue/memory"
	"github.com/remuda-ci/remuda/internal/server"
	store "github.com/remuda-ci/remuda/internal/store/memory"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

const repository = "acme/shop"

// world is a page over a real server and its use cases, with a store in memory.
type world struct {
	t       testing.TB
	store   *store.Store
	options page.Options
	handler http.Handler
}

func newWorld(t testing.TB, change func(*page.Options)) *world {
	t.Helper()
	return newWorldWith(t, nil, change)
}

// newWorldWith is newWorld with a handler of traces.
func newWorldWith(t testing.TB, traces stats.Handler, change func(*page.Options)) *world {
	t.Helper()
	w := &world{t: t, store: store.New(time.Now)}
	machines, err := compute.New(compute.Options{})
	w.must(err)
	f, err := fleet.New(fleet.Options{
		Store: w.store, Guards: w.store, Queue: queue.New(time.Now), Compute: machines, GitHub: struct{ fleet.GitHub }{}, Replica: "test",
		Pools: map[string]fleet.Pool{"default": {
			Name: "default", ResourceClasses: []string{"large"}, UsageClasses: lifecycle.UsageClasses, Policy: lifecycle.DefaultPolicy(),
		}, "jobs": {Name: "jobs", ResourceClasses: []string{"large"}, UsageClasses: lifecycle.UsageClasses, Policy: lifecycle.DefaultPolicy()}},
		Classes:   map[string]fleet.Class{"large": {CPU: 2, MemoryMiB: 4096}},
		CallsMade: func() []meter.Calls { return nil },
		Prices:    &price.List{Own: []price.Price{{InstanceType: "*", Dollars: 1}}},
		Budgets:   budget.List{{Repository: repository, Dollars: 1, WarnPercent: 50}},
		Jobs: &fleet.JobOptions{Store: w.store, GitHub: struct{ fleet.GitHubJobs }{}, Pools: map[string]fleet.JobPool{
			"jobs": {JobPool: policy.JobPool{Maximum: 2}, Labels: []string{"small"}},
		}},
	})
	w.must(err)
	s, err := server.New(server.Options{Fleet: f, Follows: traces})
	w.must(err)
	o := page.Options{Fleet: remudav1.NewFleetServiceClient(s.Viewer("the page")), Version: "1.2.3", Log: hclog.NewNullLogger()}
	change(&o)
	w.options = o
	w.restart()
	return w
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

// dayOf is the history of a host until now: it is launched, serves a run every two hours, and most of them end.
func dayOf(n int, now time.Time) (events []lifecycle.Event) {
	at := now.Add(-23*time.Hour + time.Duration(n%7)*23*time.Minute)
	add := func(after time.Duration, action lifecycle.Action, from, to, reason string) {
		at = at.Add(after)
		events = append(events, lifecycle.Event{
			At: at, InstanceID: instanceID(n), Repository: repository, RunID: fmt.Sprint(1000 + n/3), Action: action, From: from, To: to, Reason: reason,
		})
	}
	add(0, lifecycle.ActionLaunch, "", "created", "launched for the run")
	add(time.Minute, lifecycle.ActionReady, "created", "running", "registered for the run")
	for range 8 {
		add(time.Duration(20+n%5*10)*time.Minute, lifecycle.ActionPool, "running", "idle (pooled)", "deregistered and clean")
		add(time.Duration(30+n%3*15)*time.Minute, lifecycle.ActionClaim, "idle (pooled)", "claimed", "claimed for the run")
		add(2*time.Minute, lifecycle.ActionReady, "claimed", "running", "registered for the run")
	}
	if n%3 == 2 {
		add(30*time.Minute, lifecycle.ActionTerminate, "running", "terminated", "it reached its maximum age")
	}
	return events
}

// fill stores so many hosts in all states, their reports, and the history of a day.
func (w *world) fill(hosts int) {
	w.t.Helper()
	ctx, now := context.Background(), time.Now()
	states := []lifecycle.State{lifecycle.StateRunning, lifecycle.StateIdle, lifecycle.StateClaimed, lifecycle.StateCreated}
	var events []lifecycle.Event
	for n := range hosts {
		r := lifecycle.Record{
			HostKey: instanceID(n), InstanceID: instanceID(n), Pool: "default", State: states[n%len(states)], Assignment: 1, Version: 1,
			Hardware:   lifecycle.Hardware{ResourceClass: "large", UsageClass: lifecycle.UsageOnDemand, InstanceType: "c6i.large", Zone: "eu-west-1a"},
			LaunchedAt: now.Add(-time.Hour), CreatedAt: now.Add(-time.Hour), UpdatedAt: now.Add(-time.Minute), Threshold: now.Add(time.Hour), DueAt: now.Add(time.Hour),
		}
		if r.State != lifecycle.StateIdle {
			r.Repository, r.RunID, r.RequestID = repository, fmt.Sprint(1000+n/3), "asked"
		} else {
			r.PooledAt = now.Add(-time.Minute)
		}
		w.must(w.store.CreateInstance(ctx, r))
		w.must(w.store.ForHost(r.HostKey).PutReport(ctx, lifecycle.Report{HostKey: r.HostKey, HeartbeatAt: now, Assignment: 1, Signal: lifecycle.SignalRegOK, Busy: n%8 == 0}))
	}
	for n := range min(hosts, 400) {
		events = append(events, dayOf(n, now)...)
	}
	slices.SortFunc(events, func(a, b lifecycle.Event) int { return a.At.Compare(b.At) })
	for len(events) > 0 {
		most := min(500, len(events))
		w.must(w.store.AddEvents(ctx, events[:most]))
		events = events[most:]
	}
}
