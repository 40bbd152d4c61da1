package fleet_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/compute/memory"
	"github.com/remuda-ci/remuda/internal/compute/placement"
	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	queue "github.com/remuda-ci/remuda/internal/queue/memory"
	store "github.com/remuda-ci/remuda/internal/store/memory"
)

const (
	repository = "acme/app"
	patience   = 5 * time.Second
)

// world is a fleet on memory adapters with hosts that follow their records. It
// lives in a synctest bubble, so its clock costs nothing.
type world struct {
	t       *testing.T
	store   *store.Store
	queue   *queue.Queue
	compute *memory.Compute
	github  *fakeGitHub
	hub     *hub // nil: there are no jobs
	fleet   *fleet.Fleet
	// mortalOne is the replica that dies, beside fleet; nil: there is none.
	mortalOne *fleet.Fleet

	mu sync.Mutex
	// deaf hosts do not report, broken ones fail to register; "*": all do.
	deaf   map[string]bool
	broken map[string]lifecycle.Cause
	busy   map[string]bool
	// forge changes the report of a host as a job that took it over would.
	forge map[string]func(*lifecycle.Report)
	mute  bool
	// warming hosts do not listen yet.
	warming bool
	calls   map[string]int

	// keptAt is after how many changes the limits of the test were last found to be kept.
	keptAt atomic.Int64
	// read are all records as they were after so many changes.
	read struct {
		sync.Mutex
		at      int
		records []lifecycle.Record
	}
	// ledgers are how many hosts each one counted after so many changes, as far as a test asked.
	ledgers struct {
		sync.Mutex
		at   int
		used map[string]int
	}
}

func newWorld(t *testing.T, change ...func(*fleet.Options)) *world {
	t.Helper()
	compute, err := memory.New(memory.Options{Now: time.Now, Limits: placement.Limits{
		// On spot there is one machine to be had.
		SpotCapacity: map[string]int{"*": 1},
	}})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{
		t: t, store: store.New(time.Now), queue: queue.New(time.Now), compute: compute,
		github: &fakeGitHub{runners: map[int64]lifecycle.Runner{}, ids: map[string]int64{}},
		deaf:   map[string]bool{}, broken: map[string]lifecycle.Cause{}, busy: map[string]bool{}, forge: map[string]func(*lifecycle.Report){}, calls: map[string]int{},
	}
	w.fleet = w.newFleet("a", change...)
	return w
}

func (w *world) newFleet(replica string, change ...func(*fleet.Options)) *fleet.Fleet {
	w.t.Helper()
	o := fleet.Options{
		Store: w.store, Guards: w.store, Queue: w.queue, Compute: w.compute, GitHub: w.github,
		Pools:   map[string]fleet.Pool{"default": pool(lifecycle.ReuseSameRepository), "once": pool(lifecycle.ReuseNone)},
		Classes: map[string]fleet.Class{"large": {CPU: 2, MemoryMiB: 4096}, "xlarge": {CPU: 4, MemoryMiB: 8192}},
		Replica: replica, Rand: rand.New(rand.NewPCG(1, 2)),
	}
	for _, c := range change {
		c(&o)
	}
	f, err := fleet.New(o)
	if err != nil {
		w.t.Fatal(err)
	}
	return f
}

func pool(reuse lifecycle.Reuse) fleet.Pool {
	p := lifecycle.DefaultPolicy()
	p.Reuse, p.MaxRuntime = reuse, 6*time.Hour
	return fleet.Pool{
		ResourceClasses: []string{"large", "xlarge"}, UsageClasses: lifecycle.UsageClasses, Policy: p,
	}
}

// agents answers for every host, as often as an idle agent reads its record
// (internal/agent), until ctx ends.
func (w *world) agents(ctx context.Context) {
	for ctx.Err() == nil {
		w.answer(ctx)
		select {
		case <-ctx.Done():
		case <-time.After(500 * time.Millisecond):
		}
	}
}

func (w *world) answer(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mute {
		return
	}
	for _, r := range w.allRecords() {
		if w.deaf[r.HostKey] {
			continue
		}
		if r.State == lifecycle.StateTerminated {
			w.compute.Kill(r.InstanceID)
			w.deaf[r.HostKey] = true
			continue
		}
		w.compute.Boot(r.InstanceID)
		if m, err := w.compute.Describe(ctx, []string{r.InstanceID}); r.Stop != nil && (err != nil || m[0].State != lifecycle.MachineRunning) {
			continue
		}
		say := w.report
		if r.JobsOf != "" {
			say = w.hub.report
		}
		p := say(r)
		for _, key := range []string{r.HostKey, "*"} {
			if forge := w.forge[key]; forge != nil {
				forge(&p)
			}
		}
		if err := w.store.ForHost(r.HostKey).PutReport(ctx, p); err != nil && ctx.Err() == nil {
			w.t.Errorf("put report: %v", err)
		}
	}
}

func (w *world) report(r lifecycle.Record) lifecycle.Report {
	p := lifecycle.Report{
		HostKey: r.HostKey, HeartbeatAt: time.Now(), Assignment: r.Assignment, Busy: w.busy[r.HostKey],
	}
	if p.Busy {
		p.Jobs = 1
	}
	cause, broken := w.broken[r.HostKey]
	if !broken {
		cause, broken = w.broken["*"]
	}
	switch {
	case broken && (r.State == lifecycle.StateCreated || r.State == lifecycle.StateClaimed):
		p.Signal, p.Cause, p.Detail = lifecycle.SignalRegFailed, cause, "no route to github\nmore"
	case r.Hot() && !w.github.knows(r.RunnerName), r.State == lifecycle.StateClaimed && r.Standby != nil && r.Standby.RunnerID != 0 && !w.github.knows(r.RunnerName):
		p.Signal, p.Cause, p.Detail = lifecycle.SignalRegFailed, lifecycle.CauseGitHub, "its registration is gone"
	case r.Warming() && broken:
		p.Signal, p.Cause, p.Detail = lifecycle.SignalRegFailed, cause, "no route to github"
	case r.Warming() && r.Registration != nil && !w.warming, r.Hot():
		p.Signal = lifecycle.SignalRegOK
		w.github.register(r)
	case r.State == lifecycle.StateCreated || r.State == lifecycle.StateClaimed || r.State == lifecycle.StateRunning:
		p.Signal = lifecycle.SignalRegOK
		w.github.register(r)
	case broken && r.Unused():
		p.Signal, p.Cause, p.Detail = lifecycle.SignalRemoveRegFailed, cause, "the pre-runner script failed"
	case r.Releasing() && !p.Busy && (r.Registration != nil || r.Unused()):
		p.Signal = lifecycle.SignalRemoveRegOK
		w.github.deregister(r.RunnerName)
	case r.Pooled(), r.Stopped(), r.Resetting():
		p.Signal = lifecycle.SignalRemoveRegOK
	}
	return p
}

func (w *world) set(do func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	do()
}

func (w *world) records(states ...lifecycle.State) []lifecycle.Record {
	var some []lifecycle.Record
	all := w.allRecords()
	for i := range all {
		if len(states) == 0 || slices.Contains(states, all[i].State) {
			some = append(some, all[i])
		}
	}
	return some
}

// allRecords are all records, not to be changed. They are read again only after a change: most
// of what the tests do is to look whether something has changed.
func (w *world) allRecords() []lifecycle.Record {
	w.read.Lock()
	defer w.read.Unlock()
	if changes := w.store.Changes(); w.read.records == nil || w.read.at != changes {
		w.read.at, w.read.records = changes, []lifecycle.Record{}
		for of := (lifecycle.PageOf{Limit: 1000}); ; {
			page, err := w.store.ListInstances(context.Background(), lifecycle.Filter{}, of)
			if err != nil {
				w.t.Fatalf("list the records: %v", err)
			}
			w.read.records = append(w.read.records, page.Items...)
			if of.After = page.Next; page.Next == "" {
				break
			}
		}
	}
	return w.read.records
}

func (w *world) record(key string) lifecycle.Record {
	r, err := w.store.Instance(context.Background(), key)
	if err != nil {
		w.t.Helper()
		w.t.Fatal(err)
	}
	return r
}

func (w *world) machines() int {
	page, err := w.compute.List(context.Background(), lifecycle.PageOf{Limit: 1000})
	if err != nil {
		w.t.Helper()
		w.t.Fatal(err)
	}
	return len(page.Items)
}

func demand(run, request string, count int) fleet.Demand {
	return fleet.Demand{Repository: repository, RunID: run, RequestID: request, Spec: lifecycle.Spec{Count: count}}
}

// provision drives a Provision to its end.
func (w *world) provision(ctx context.Context, d fleet.Demand) (*fleet.Provision, error) {
	w.t.Helper()
	p, err := w.fleet.NewProvision(d)
	if err != nil {
		w.t.Fatal(err)
	}
	return p, w.fleet.Drive(ctx, p, patience)
}

func (w *world) mustProvision(ctx context.Context, d fleet.Demand) []lifecycle.Record {
	w.t.Helper()
	p, err := w.provision(ctx, d)
	if err != nil {
		w.t.Fatalf("provision %s: %v", d.RequestID, err)
	}
	return p.Instances()
}

func (w *world) release(ctx context.Context, run string, waits bool) *fleet.Release {
	w.t.Helper()
	r := w.fleet.NewRelease(repository, run, 0, waits)
	if err := w.fleet.Drive(ctx, r, patience); err != nil {
		w.t.Fatalf("release %s: %v", run, err)
	}
	return r
}

// fakeGitHub keeps registrations by name; with down set nothing answers.
type fakeGitHub struct {
	mu      sync.Mutex
	down    bool
	downFor string // a repository whose tokens are not to be had
	runners map[int64]lifecycle.Runner
	ids     map[string]int64 // by name, also of runners that are gone
	next    int64
	tokens  int
	place   string // where all runners belong; empty: to their repositories
	// labels are those that were set, by runner.
	labels map[int64][]string
	// labeling may refuse to set the labels of a runner; nil: it does not.
	labeling func(id int64) error
	// deleting may refuse the deletion of a registration; nil: none is.
	deleting func(id int64) error
}

func (g *fakeGitHub) fail() error {
	if g.down {
		return &lifecycle.UnavailableError{What: "github", RetryAfter: time.Second, Err: context.DeadlineExceeded}
	}
	return nil
}

func (g *fakeGitHub) token(kind lifecycle.RegistrationKind, repository string) (lifecycle.Registration, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.tokens++
	if repository == g.downFor {
		return lifecycle.Registration{}, &lifecycle.UnavailableError{What: "github", RetryAfter: time.Second, Err: context.DeadlineExceeded}
	}
	return lifecycle.Registration{
		Kind: kind, URL: "https://github.test/" + cmp.Or(g.place, repository),
		Secret: lifecycle.Secret(fmt.Sprintf("%s-%d", kind, g.tokens)), ExpiresAt: time.Now().Add(time.Hour),
	}, g.fail()
}

func (g *fakeGitHub) RegistrationToken(_ context.Context, repository string) (lifecycle.Registration, error) {
	return g.token(lifecycle.RegistrationToken, repository)
}

func (g *fakeGitHub) RemoveToken(_ context.Context, repository string) (lifecycle.Registration, error) {
	return g.token(lifecycle.RegistrationRemove, repository)
}

func (g *fakeGitHub) setDownFor(repository string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.downFor = repository
}

func (g *fakeGitHub) FindRunner(_ context.Context, _, name string) (lifecycle.Runner, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, r := range g.runners {
		if r.Name == name {
			return r, g.fail()
		}
	}
	return lifecycle.Runner{}, lifecycle.ErrNotFound
}

// refuses sets what refuses deletions and labels; nil: nothing does.
func (g *fakeGitHub) refuses(deleting, labeling func(id int64) error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.deleting, g.labeling = deleting, labeling
}

func (g *fakeGitHub) DeleteRunner(_ context.Context, _ string, id int64) error {
	g.mu.Lock()
	deleting := g.deleting
	g.mu.Unlock()
	if deleting != nil {
		if err := deleting(id); err != nil {
			return err
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.down {
		return g.fail()
	}
	delete(g.runners, id)
	return nil
}

// SetLabels notes the labels of a runner.
func (g *fakeGitHub) SetLabels(_ context.Context, _ string, id int64, labels []string) error {
	g.mu.Lock()
	labeling := g.labeling
	g.mu.Unlock()
	if labeling != nil {
		if err := labeling(id); err != nil {
			return err
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, ok := g.runners[id]; !ok || g.down {
		return cmp.Or(g.fail(), lifecycle.ErrNotFound)
	}
	if g.labels == nil {
		g.labels = map[int64][]string{}
	}
	g.labels[id] = labels
	return nil
}

func (g *fakeGitHub) Runners(context.Context, string, lifecycle.PageOf) (lifecycle.Page[lifecycle.Runner], error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var page lifecycle.Page[lifecycle.Runner]
	for _, r := range g.runners {
		page.Items = append(page.Items, r)
	}
	return page, g.fail()
}

func (g *fakeGitHub) register(r lifecycle.Record) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, known := g.runners[g.ids[r.RunnerName]]; known {
		return
	}
	g.next++
	g.ids[r.RunnerName] = g.next
	g.runners[g.next] = lifecycle.Runner{ID: g.next, Name: r.RunnerName, Online: true}
}

func (g *fakeGitHub) knows(name string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, known := g.runners[g.ids[name]]
	return known
}

func (g *fakeGitHub) deregister(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for id, r := range g.runners {
		if r.Name == name {
			delete(g.runners, id)
		}
	}
}

func (g *fakeGitHub) names() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var names []string
	for _, r := range g.runners {
		names = append(names, r.Name)
	}
	return names
}
