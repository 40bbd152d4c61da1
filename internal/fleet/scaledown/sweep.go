// Package scaledown ends idle hosts, and hosts that GitHub does not know: it lists the
// registrations of each owner, applies what policy.ScaleDown decides, and takes the
// snapshot from which `controld plan` shows the next decisions.
package scaledown

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/fleet/hosts"
	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/fleet/ports"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/fleethold"
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/recent"
)

// Registrations is what scale-down asks of GitHub beside the port GitHub.
type Registrations interface {
	// Runner asks for a registration by its id: ErrNotFound. It is asked only after a listing
	// of the same place, since a caller that may not see the place gets the same answer.
	Runner(ctx context.Context, repository string, id int64) (lifecycle.Runner, error)
}

// Options are the parts of scale-down, which ends idle hosts and hosts that GitHub does not know.
type Options struct {
	Policy policy.ScaleDown
	GitHub Registrations
	// Scope names the owner of the runners of a repository: "owner/name", or "owner" for an
	// organization's. nil: the repository's.
	Scope func(repository string) string
	// Every is the interval; 0: 5 minutes.
	Every time.Duration
	// PlanOnly: a plan and a snapshot can be asked for, and no host is ended.
	PlanOnly bool
	// Taken is what a plan is made of in place of the fleet as it is: a snapshot, and the decisions about what was left out of it; nil: nothing is.
	Taken func() (policy.Snapshot, []op.Decided)
}

// scaleDownEvery is often enough that an idle host costs little more than the idle time it is allowed, and
// seldom enough that listing every owner's runners is a small part of GitHub's hourly budget.
const scaleDownEvery = 5 * time.Minute

func (s Options) Interval() time.Duration {
	if s.Every > 0 {
		return s.Every
	}
	return scaleDownEvery
}

// Sweep looks at the hosts that are, or should be, on GitHub, owner by owner, and applies in
// small steps what policy.ScaleDown decides from GitHub's listing. If GitHub does not answer
// about a host or an owner, that one is left to the next sweep, and the others have their turn.
type Sweep struct {
	op.Stages
	env    *Scaler
	owners []*ownerHosts
	// kept is the period of the policy that held when the sweep began.
	kept policy.Period
	// unanswered counts the hosts of an owner in a row for which GitHub did not answer.
	unanswered int
	// busyWhy is why the host in hand is not ended after all.
	busyWhy lifecycle.Reason
}

// ownerHosts are the hosts of one owner on their way through a sweep.
type ownerHosts struct {
	// name is that of the organization or repository that has the runners, repository one by
	// which it can be asked for.
	name, repository string

	hosts  []scaleDownHost
	listed []policy.Runner
	found  map[string][]policy.Runner // of listed, by instance id
	page   lifecycle.PageOf
	// orphans have their last chance first. cut are those whose end an earlier
	// sweep began and that GitHub does not list.
	orphans, cut []scaleDownHost
	// judged are hosts with what is to be done about them; all: there are no others.
	judged []judged
	all    bool
}

// scaleDownHost is a host, and how the policy sees it.
type scaleDownHost struct {
	record lifecycle.Record
	seen   policy.Candidate
}

// judged is a host with what is to be done with it. unregistered: GitHub has no registration of it.
type judged struct {
	scaleDownHost
	policy.HostVerdict
	unregistered bool
}

// NewSweep begins a sweep.
func (sc *Scaler) NewSweep() *Sweep {
	s := &Sweep{env: sc, Stages: sc.Ops.Stages("scale_down")}
	s.Next = s.read
	if sc.Options == nil || sc.Options.PlanOnly {
		s.Next = func(context.Context, time.Time) (op.Progress, error) { return op.Done, nil }
	}
	return s
}

// read finds the hosts, the cloud first: an operator's tag is on the machine.
func (s *Sweep) read(ctx context.Context, now time.Time) (op.Progress, error) {
	machines, err := s.env.Hosts.Machines(ctx)
	if err != nil {
		return op.Again, err
	}
	hosts, err := s.env.scaleDownHosts(ctx, machines, now)
	if err != nil {
		return op.Again, err
	}
	s.owners, s.kept = byOwner(hosts), s.env.Options.Policy.ActivePeriod(now)
	return s.Then(s.list)
}

// scaleDownHosts are the hosts of the machines that scale-down looks at, in the order of the machines.
func (sc *Scaler) scaleDownHosts(ctx context.Context, machines []lifecycle.Machine, now time.Time) ([]scaleDownHost, error) {
	keys := make([]string, 0, len(machines))
	for _, m := range machines {
		keys = append(keys, m.HostKey)
	}
	records, err := sc.Store.Instances(ctx, keys)
	if err != nil {
		return nil, fmt.Errorf("read hosts: %w", err)
	}
	byKey := make(map[string]lifecycle.Record, len(records))
	var looked []string
	for _, r := range records {
		if Registers(r, now) {
			byKey[r.HostKey] = r
			looked = append(looked, r.HostKey)
		}
	}
	reports, err := sc.Hosts.Reports(ctx, looked, now)
	if err != nil {
		return nil, err
	}
	var hosts []scaleDownHost
	for _, m := range machines {
		r, ok := byKey[m.HostKey]
		if !ok || m.State == lifecycle.MachineEnding {
			continue
		}
		report, told := reports[m.HostKey]
		host := scaleDownHost{r, sc.Candidate(r, m)}
		if told {
			host.seen.AgentBusy, host.seen.AgentSeenAt = &report.Busy, report.HeartbeatAt
		}
		hosts = append(hosts, host)
	}
	return hosts, nil
}

// Registers reports whether the host is, or should be, on GitHub, and free to go: none in the pool or on its
// way there, none that an operator holds, and none that leaves for another reason anyway.
func Registers(r lifecycle.Record, now time.Time) bool {
	if r.Held(now) || r.Retiring && !r.ScalingDown() {
		return false
	}
	switch r.State {
	case lifecycle.StateCreated, lifecycle.StateRunning:
		return true
	case lifecycle.StateClaimed:
		return !now.Before(r.Threshold)
	}
	return false
}

// Candidate is what record and machine say of a host. All hosts run Linux: there
// is no agent for anything else.
func (sc *Scaler) Candidate(r lifecycle.Record, m lifecycle.Machine) policy.Candidate {
	c := policy.Candidate{
		InstanceID: r.InstanceID, LaunchedAt: r.ServingSince(sc.Hosts.Policy(r.Pool)), OS: "linux",
		Orphan: r.Orphan(), RunnerID: r.GitHubRunnerID, Bypass: m.Bypass, IdleDetectedAt: r.IdleDetectedAt,
	}
	c.Owner, c.Scope = sc.Options.owner(r.Repository)
	return c
}

// owner is the owner of the runners of a repository, and whether that is an organization or the
// repository. GitHub does not distinguish upper and lower case in names.
func (s Options) owner(repository string) (name, scope string) {
	if repository == "" {
		return "", ""
	}
	name = repository
	if s.Scope != nil {
		name = s.Scope(repository)
	}
	scope = "repo"
	if !strings.Contains(name, "/") {
		scope = "org"
	}
	return strings.ToLower(name), scope
}

// byOwner groups hosts, by first appearance.
func byOwner(hosts []scaleDownHost) []*ownerHosts {
	var owners []*ownerHosts
	known := map[string]*ownerHosts{}
	for _, h := range hosts {
		o := known[h.seen.Owner]
		if o == nil {
			o = &ownerHosts{name: h.seen.Owner, repository: h.record.Repository}
			known[o.name], owners = o, append(owners, o)
		}
		o.hosts = append(o.hosts, h)
	}
	return owners
}

// spared says why an idle host is left alone anyway, or "".
func (sc *Scaler) spared(ctx context.Context, r lifecycle.Record) (why lifecycle.Reason, err error) {
	if sc.WantedIdle(r) {
		return poolMinimum(sc.JobPools[r.Pool].Minimum), nil
	}
	q, err := sc.Hosts.RequestOf(ctx, r, map[string]*lifecycle.Request{})
	if err != nil {
		return why, err
	}
	if q != nil && !q.Settled() {
		return requestOpen(*q), nil
	}
	jobs, err := sc.Hosts.WaitingJobs(ctx, r)
	if err != nil || len(jobs) == 0 {
		return why, err
	}
	return jobWaits(jobs[0]), nil
}

// WantedIdle reports whether the host belongs to a job pool that has a minimum of idle hosts itself.
func (sc *Scaler) WantedIdle(r lifecycle.Record) bool {
	return r.JobsOf != "" && sc.JobPools[r.Pool].Minimum > 0
}

// starting says why a host that GitHub does not list is left alone: it has time left to come
// up, and its request waits for it. "" if it is not starting or no request waits. A host that
// does not come up in time is ended by its threshold.
func (sc *Scaler) starting(ctx context.Context, r lifecycle.Record, now time.Time) (why lifecycle.Reason, err error) {
	if r.State != lifecycle.StateCreated && r.State != lifecycle.StateClaimed || !now.Before(r.Threshold) {
		return why, nil
	}
	q, err := sc.Hosts.RequestOf(ctx, r, map[string]*lifecycle.Request{})
	if err != nil || q == nil || q.Settled() {
		return why, err
	}
	return requestAwaits(*q, r), nil
}

// leftAlone says why the sweep leaves a host alone for which the policy has an action, or "".
func (sc *Scaler) leftAlone(ctx context.Context, r lifecycle.Record, v policy.HostVerdict, hold fleethold.Hold, now time.Time) (why lifecycle.Reason, err error) {
	if heldBack(v.Action) && hold.InForce(now) {
		return underHold(hold, v), nil
	}
	switch v.Action {
	case policy.ActionDeregisterAndTerminate:
		return sc.spared(ctx, r)
	case lifecycle.ActionTerminate, lifecycle.ActionMarkOrphan:
		return sc.starting(ctx, r, now)
	}
	return why, nil
}

// heldBack reports whether the fleet's hold forbids the action: an end, or a mark that leads to one.
func heldBack(a lifecycle.Action) bool {
	switch a {
	case policy.ActionDeregisterAndTerminate, lifecycle.ActionTerminate, lifecycle.ActionMarkIdle, lifecycle.ActionMarkOrphan:
		return true
	}
	return false
}

// Scaler begins sweeps of scale-down and takes snapshots. Its exported fields are its parts: they are set
// before the first call and not changed after it. It is safe for concurrent use.
type Scaler struct {
	Store   ports.Store
	Compute ports.Machines
	GitHub  ports.GitHub
	Hosts   *hosts.Hosts
	// Options say what is ended; nil: nothing is.
	Options *Options
	// JobPools are the job pools, by the name of their pool.
	JobPools map[string]ports.JobPool
	Log      hclog.Logger
	Ops      *op.Driver

	readings recent.Answers[reading]
}
