package fleet_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
	queue "github.com/remuda-ci/remuda/internal/queue/memory"
	store "github.com/remuda-ci/remuda/internal/store/memory"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

const (
	manyOwners = 50
	manyHosts  = 10_000 / manyOwners // of each
	manyKept   = 100
	githubPage = 100
)

// A scale-down over 10,000 hosts of 50 owners asks GitHub once for each owner
// and page, and makes two calls for each host that it ends: one that deletes its
// registration and one that ends its machine.
func TestTheCallsOfALargeScaleDown(t *testing.T) {
	racepass.OneGoroutine(t)
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	hub := newPagedGitHub()
	clock := func() time.Time { return now }
	records, cloud := store.New(clock), &largeCloud{ended: map[string]int{}}
	var busy, orphans, hosts []lifecycle.Record
	for owner := range manyOwners {
		repository := fmt.Sprintf("owner-%02d/app", owner)
		for i, m := range cloud.launch(repository, now.Add(-time.Hour)) {
			r := runningHost(m, repository)
			report := lifecycle.Report{HostKey: m.HostKey, HeartbeatAt: now, Assignment: 1, Signal: lifecycle.SignalRegOK, Busy: i%4 == 0}
			switch {
			case report.Busy:
				busy = append(busy, r)
			case i%10 == 1:
				r.OrphanAt, r.GitHubRunnerID = now.Add(-5*time.Minute), int64(1_000_000+i)
				orphans = append(orphans, r)
			}
			if !r.Orphan() {
				hub.add(repository, r.RunnerName)
			}
			hosts = append(hosts, r)
			if err := records.CreateInstance(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			if err := records.ForHost(m.HostKey).PutReport(t.Context(), report); err != nil {
				t.Fatal(err)
			}
		}
	}
	f, err := fleet.New(fleet.Options{
		Store: records, Queue: queue.New(clock), Compute: cloud, GitHub: hub, Replica: "a",
		Pools:     map[string]fleet.Pool{"default": pool(lifecycle.ReuseSameRepository)},
		Classes:   map[string]fleet.Class{"large": {CPU: 2, MemoryMiB: 4096}, "xlarge": {CPU: 4, MemoryMiB: 8192}},
		ScaleDown: &fleet.ScaleDown{Policy: policy.ScaleDown{Idle: keepMost(t)}, GitHub: hub},
	})
	if err != nil {
		t.Fatal(err)
	}
	stepAll(t, f.NewScaleDownSweep(), now)
	for range 2 { // told, and forgotten once it is gone
		stepAll(t, f.NewDueSweep(), now)
		now = now.Add(time.Minute)
	}

	idle := len(hosts) - len(busy) - len(orphans) - manyKept*manyOwners
	pages := (manyHosts - len(orphans)/manyOwners + githubPage - 1) / githubPage
	want := map[string]int{"list": manyOwners * pages, "ask": len(orphans), "delete": idle, "terminate": idle + len(orphans), "lists of machines": manyHosts * manyOwners / 1000}
	got := map[string]int{"list": hub.calls["list"], "ask": hub.calls["ask"], "delete": hub.calls["delete"], "terminate": len(cloud.ended), "lists of machines": cloud.lists}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("calls (-want +got):\n%s", d)
	}
	for _, page := range slices.Sorted(mapKeys(hub.pages)) {
		if hub.pages[page] != 1 {
			t.Errorf("%s was listed %d times", page, hub.pages[page])
		}
	}
	for id, times := range cloud.ended {
		if times != 1 {
			t.Errorf("%s was told to end %d times", id, times)
		}
	}
	if hub.calls["find"] != 0 {
		t.Errorf("%d registrations were looked for by name", hub.calls["find"])
	}
	for _, r := range busy {
		if cloud.ended[r.InstanceID] != 0 {
			t.Fatalf("busy %s was ended", r.InstanceID)
		}
	}
}

// keepMost keeps manyKept idle hosts of each owner.
func keepMost(t *testing.T) []policy.Period {
	t.Helper()
	p, err := policy.ParsePeriod("* * * * *", "", manyKept, policy.EvictOldest)
	if err != nil {
		t.Fatal(err)
	}
	return []policy.Period{p}
}

func mapKeys(m map[string]int) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func runningHost(m lifecycle.Machine, repository string) lifecycle.Record {
	return lifecycle.Record{
		HostKey: m.HostKey, InstanceID: m.InstanceID, Pool: "default", State: lifecycle.StateRunning, RunID: "7", Repository: repository,
		Assignment: 1,
		Hardware:   lifecycle.Hardware{ResourceClass: "large", UsageClass: lifecycle.UsageOnDemand, InstanceType: m.InstanceType},
		Threshold:  m.LaunchedAt.Add(6 * time.Hour), RuntimeEndsAt: m.LaunchedAt.Add(6 * time.Hour), DueAt: m.LaunchedAt.Add(6 * time.Hour),
		RunnerName: lifecycle.RunnerName(1, m.InstanceID), LaunchedAt: m.LaunchedAt, CreatedAt: m.LaunchedAt, UpdatedAt: m.LaunchedAt,
	}
}

func stepAll(t *testing.T, op fleet.Op, now time.Time) {
	t.Helper()
	for {
		p, err := op.Step(t.Context(), now)
		if err != nil {
			t.Fatal(err)
		}
		if p.Done {
			return
		}
	}
}

// largeCloud is a cloud that counts how often the end of each machine is ordered.
type largeCloud struct {
	fleet.Compute // what it is not asked for
	machines      []lifecycle.Machine
	ended         map[string]int
	lists         int
}

func (c *largeCloud) launch(repository string, at time.Time) []lifecycle.Machine {
	from := len(c.machines)
	for range manyHosts {
		id := fmt.Sprintf("i-%017x", len(c.machines))
		c.machines = append(c.machines, lifecycle.Machine{
			InstanceID: id, HostKey: id, State: lifecycle.MachineRunning,
			Hardware:   lifecycle.Hardware{InstanceType: "c6i.large"},
			LaunchedAt: at, Pool: "default", Repository: repository,
		})
	}
	return c.machines[from:]
}

func (c *largeCloud) List(_ context.Context, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Machine], error) {
	c.lists++
	from, _ := strconv.Atoi(page.After)
	to := min(from+page.Size(), len(c.machines))
	got := lifecycle.Page[lifecycle.Machine]{Items: c.machines[from:to]}
	if to < len(c.machines) {
		got.Next = strconv.Itoa(to)
	}
	return got, nil
}

func (c *largeCloud) Describe(_ context.Context, ids []string) ([]lifecycle.Machine, error) {
	var machines []lifecycle.Machine
	for _, id := range ids {
		m := lifecycle.Machine{InstanceID: id,
			Hardware: lifecycle.Hardware{InstanceType: "c6i.large"},
			State:    lifecycle.MachineRunning}
		if c.ended[id] > 0 {
			m.State = lifecycle.MachineGone
		}
		machines = append(machines, m)
	}
	return machines, nil
}

func (c *largeCloud) Terminate(_ context.Context, ids []string) error {
	for _, id := range ids {
		c.ended[id]++
	}
	return nil
}

// pagedGitHub is GitHub with many owners, whose calls are cloud.
type pagedGitHub struct {
	fleet.GitHub // what it is not asked for
	runners      map[string][]lifecycle.Runner
	calls, pages map[string]int
	last         int64
}

func newPagedGitHub() *pagedGitHub {
	return &pagedGitHub{runners: map[string][]lifecycle.Runner{}, calls: map[string]int{}, pages: map[string]int{}}
}

func (g *pagedGitHub) add(repository, name string) {
	g.last++
	g.runners[repository] = append(g.runners[repository], lifecycle.Runner{ID: g.last, Name: name, Online: true})
}

func (g *pagedGitHub) Runners(_ context.Context, repository string, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Runner], error) {
	g.calls["list"]++
	g.pages[strings.Join([]string{repository, page.After}, " ")]++
	from, _ := strconv.Atoi(page.After)
	all := g.runners[repository]
	to := min(from+min(page.Size(), githubPage), len(all))
	got := lifecycle.Page[lifecycle.Runner]{Items: slices.Clone(all[from:to])}
	if to < len(all) {
		got.Next = strconv.Itoa(to)
	}
	return got, nil
}

func (g *pagedGitHub) Runner(context.Context, string, int64) (lifecycle.Runner, error) {
	g.calls["ask"]++
	return lifecycle.Runner{}, lifecycle.ErrNotFound
}

func (g *pagedGitHub) FindRunner(context.Context, string, string) (lifecycle.Runner, error) {
	g.calls["find"]++
	return lifecycle.Runner{}, lifecycle.ErrNotFound
}

func (g *pagedGitHub) DeleteRunner(_ context.Context, repository string, id int64) error {
	g.calls["delete"]++
	g.runners[repository] = slices.DeleteFunc(g.runners[repository], func(r lifecycle.Runner) bool { return r.ID == id })
	return nil
}
