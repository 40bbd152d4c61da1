package scaledown

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/listing"
	"github.com/remuda-ci/remuda/internal/policy"
)

// Snapshot is the fleet as the next scale-down would find it, for `controld plan`: the same hosts, reports
// and registrations, read and put together by the same code. A snapshot has no words for some of the reasons
// for which that sweep leaves a host alone. Such hosts are returned as decisions. They do not count among
// those that are kept idle, so the others are judged as if they were there.
func (sc *Scaler) Snapshot(ctx context.Context, now time.Time) (policy.Snapshot, []op.Decided, error) {
	if sc.Options == nil {
		return policy.Snapshot{}, nil, errors.New("take a snapshot: this fleet has no scale-down")
	}
	machines, err := sc.Hosts.Machines(ctx)
	if err != nil {
		return policy.Snapshot{}, nil, err
	}
	hosts, err := sc.scaleDownHosts(ctx, machines, now)
	if err != nil {
		return policy.Snapshot{}, nil, err
	}
	p := snapshotBuilder{env: sc, Snapshot: policy.Snapshot{Now: now, Policy: sc.Options.Policy}, seen: map[string]policy.Candidate{}, missing: map[string]bool{}}
	for _, o := range byOwner(hosts) {
		if err := p.owner(ctx, o); err != nil {
			return policy.Snapshot{}, nil, err
		}
	}
	p.instances(hosts, machines)
	if err := p.withoutSpared(ctx, hosts); err != nil {
		return policy.Snapshot{}, nil, err
	}
	return p.Snapshot, p.left, nil
}

// snapshotBuilder is a snapshot that is being taken.
type snapshotBuilder struct {
	policy.Snapshot
	env *Scaler
	// seen is how the policy sees each host, by instance id, and missing are the hosts that are left out.
	seen    map[string]policy.Candidate
	missing map[string]bool
	left    []op.Decided
}

// owner lists the registrations of an owner, and asks for its orphans that are not among them.
// Hosts are left out if GitHub does not answer about them.
func (p *snapshotBuilder) owner(ctx context.Context, o *ownerHosts) error {
	list := func(page lifecycle.PageOf) (lifecycle.Page[lifecycle.Runner], error) {
		if o.name == "" {
			return lifecycle.Page[lifecycle.Runner]{}, nil // there is no owner to ask
		}
		return p.env.GitHub.Runners(ctx, o.repository, page)
	}
	for r, err := range listing.All(o.page, list) {
		if ctx.Err() != nil {
			return fmt.Errorf("list runners: %w", context.Cause(ctx))
		}
		if err != nil {
			for _, h := range o.hosts {
				p.leave(h, notListed(o.name).And(fmt.Sprintf(": %v", err)))
			}
			return nil
		}
		o.listed = append(o.listed, o.runner(r))
	}
	for _, r := range o.listed {
		p.Runners = append(p.Runners, policy.SnapshotRunner{Runner: r, Listed: true})
	}
	o.sort()
	for _, h := range append(o.orphans, o.hosts...) {
		p.seen[h.record.InstanceID] = h.seen
	}
	for _, h := range o.cut {
		p.leave(h, endInterrupted)
	}
	return p.lastChances(ctx, o)
}

// lastChances asks for orphans by their ids.
func (p *snapshotBuilder) lastChances(ctx context.Context, o *ownerHosts) error {
	listed := map[int64]bool{}
	for _, r := range o.listed {
		listed[r.ID] = true
	}
	for _, h := range o.orphans {
		if h.seen.RunnerID == 0 || h.seen.Bypass || listed[h.seen.RunnerID] {
			continue
		}
		r, err := p.env.Options.GitHub.Runner(ctx, h.record.Repository, h.seen.RunnerID)
		switch {
		case err == nil:
			p.Runners = append(p.Runners, policy.SnapshotRunner{Runner: o.runner(r)})
		case ctx.Err() != nil:
			return fmt.Errorf("find runner %d: %w", h.seen.RunnerID, err)
		case !errors.Is(err, lifecycle.ErrNotFound):
			p.leave(h, orphanNotAsked(h.seen.RunnerID, err))
		}
	}
	return nil
}

func (p *snapshotBuilder) leave(h scaleDownHost, why lifecycle.Reason) {
	p.missing[h.record.InstanceID] = true
	p.left = append(p.left, op.Decided{InstanceID: h.record.InstanceID, Action: lifecycle.ActionKeep, Code: why.Code, Reason: why.Text, Sweep: "scale_down"})
}

// instances writes down the hosts, in the order of the machines.
func (p *snapshotBuilder) instances(hosts []scaleDownHost, machines []lifecycle.Machine) {
	states := make(map[string]lifecycle.MachineState, len(machines))
	for _, m := range machines {
		states[m.InstanceID] = m.State
	}
	for _, h := range hosts {
		if id := h.record.InstanceID; !p.missing[id] {
			p.Instances = append(p.Instances, policy.SnapshotInstance{Candidate: p.seen[id], State: string(states[id])})
		}
	}
}

// withoutSpared leaves out the hosts that the sweep leaves alone since the fleet
// is held, or their request or job pool still wants them.
func (p *snapshotBuilder) withoutSpared(ctx context.Context, hosts []scaleDownHost) error {
	hold, err := p.env.Hosts.FleetHold(ctx)
	if err != nil {
		return err
	}
	byID := make(map[string]scaleDownHost, len(hosts))
	for _, h := range hosts {
		byID[h.record.InstanceID] = h
	}
	for _, v := range p.Plan() {
		why, err := p.env.leftAlone(ctx, byID[v.InstanceID].record, v, hold, p.Now)
		if err != nil {
			return err
		}
		if why.Given() {
			p.leave(byID[v.InstanceID], why)
		}
	}
	kept := p.Instances[:0]
	for _, i := range p.Instances {
		if !p.missing[i.InstanceID] {
			kept = append(kept, i)
		}
	}
	p.Instances = kept
	return nil
}
