package fleet_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/services"
	"github.com/remuda-ci/remuda/internal/services/model"
)

// containers are services and their jobs, as a test says they are.
type containers struct {
	mu      sync.Mutex
	desired map[string]int
	backlog map[string]model.Backlog
	// lookErr, countErr and setErr are why a service cannot be asked for.
	lookErr, countErr, setErr map[string]error
	// counting is called before a count answers, setting before a service is set.
	counting, setting func(service string)
	calls             map[string]int
	sets              []string
	// stalled are the jobs of a service whose worker went silent.
	stalled map[string][]string
	// stalledErr is why the jobs of a service cannot be failed.
	stalledErr map[string]error
	log        bytes.Buffer // of the fleet whose services are in tables
}

// FailStalled fails the jobs of a service, which are busy until then. It gives up when ctx ends.
func (c *containers) FailStalled(_ context.Context, service string, _ time.Time, dry bool) ([]string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls["fail_stalled"]++
	if err := cmp.Or(c.countErr[service], c.stalledErr[service]); err != nil {
		return nil, err
	}
	jobs := c.stalled[service]
	if !dry && len(jobs) > 0 {
		*c.backlog[service].Busy -= len(jobs)
		delete(c.stalled, service)
	}
	return jobs, nil
}

func newContainers() *containers {
	return &containers{
		desired: map[string]int{}, backlog: map[string]model.Backlog{}, calls: map[string]int{},
		lookErr: map[string]error{}, countErr: map[string]error{}, setErr: map[string]error{},
	}
}

func (c *containers) Describe(_ context.Context, services []string) map[string]model.Observation {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls["describe"]++
	looks := map[string]model.Observation{}
	for _, name := range services {
		n := c.desired[name]
		looks[name] = model.Observation{Tasks: model.Tasks{Desired: n, Running: n}, Err: c.lookErr[name]}
		if c.lookErr[name] != nil {
			looks[name] = model.Observation{Err: c.lookErr[name]}
		}
	}
	return looks
}

func (c *containers) SetDesired(_ context.Context, service string, desired int) error {
	if c.setting != nil {
		c.setting(service)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls["set"]++
	if err := c.setErr[service]; err != nil {
		return err
	}
	if busy := c.backlog[service].Busy; busy != nil && *busy > 0 && desired < c.desired[service] {
		panic(fmt.Sprintf("%s is scaled in from %d to %d with %d busy runners", service, c.desired[service], desired, *busy))
	}
	c.desired[service] = desired
	c.sets = append(c.sets, fmt.Sprintf("%s=%d", service, desired))
	return nil
}

// Count gives up when ctx ends, also where counting hangs.
func (c *containers) Count(ctx context.Context, service string) (model.Backlog, error) {
	if c.counting != nil {
		called := make(chan struct{})
		go func() {
			defer close(called)
			c.counting(service)
		}()
		select {
		case <-called:
		case <-ctx.Done():
			return model.Backlog{}, &lifecycle.UnavailableError{What: "count", Err: context.Cause(ctx)}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls["count"]++
	if err := c.countErr[service]; err != nil {
		return model.Backlog{}, err
	}
	return c.backlog[service], nil
}

// jobs says how many jobs of a service wait and are worked on.
func (c *containers) jobs(service string, queued, busy int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.backlog[service] = model.Backlog{Queued: &queued, Busy: &busy}
}

func (c *containers) has(service string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.desired[service]
}

func (c *containers) called() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.calls)
}

// serviceWorld is a world with services of those names, with nothing that waits.
type serviceWorld struct {
	*world
	containers *containers
}

func (w *serviceWorld) options(names ...string) func(*fleet.Options) {
	all := map[string]services.Service{}
	for _, name := range names {
		w.containers.jobs(name, 0, 0)
		all[name] = services.Service{
			Name: name, Region: "eu-west-1", Cluster: "runners", ECSService: name, Backlog: w.containers,
			Policy: policy.ServicePolicy{Maximum: 4, BacklogPerRunner: 10, IdleChecks: 5},
		}
	}
	return func(o *fleet.Options) {
		o.Services = &services.Options{Store: w.store, Scaler: w.containers, Services: all}
	}
}

func inServices(t *testing.T, do func(*testing.T, *serviceWorld), names ...string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &serviceWorld{world: newWorld(t), containers: newContainers()}
		w.fleet = w.newFleet("a", w.options(names...))
		do(t, w)
	})
}

// sweep looks at all services once, a minute after the look before.
func (w *serviceWorld) sweep() {
	w.t.Helper()
	time.Sleep(time.Minute)
	s := w.fleet.NewServiceSweep()
	if err := w.fleet.Drive(w.t.Context(), s, 0); err != nil {
		w.t.Fatal(err)
	}
}

func (w *serviceWorld) nudge(name string) services.Status {
	w.t.Helper()
	status, err := w.fleet.NudgeService(w.t.Context(), name)
	if err != nil {
		w.t.Fatal(err)
	}
	return status
}

func (w *serviceWorld) want(name string, desired int, when string) {
	w.t.Helper()
	if got := w.containers.has(name); got != desired {
		w.t.Errorf("%s: %s has %d runners, want %d", when, name, got, desired)
	}
}
