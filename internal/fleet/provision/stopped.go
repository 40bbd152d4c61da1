package provision

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/hosts"
	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/arrival"
)

// A request that finds no host in the pool takes those that are stopped, and has their machines started, before it launches any. Each is one
// write under the version of its record, then the request's own row has it, and then it tells the cloud. What a crash leaves of that the due
// sweep does. Only on-demand machines are stopped, so a request for spot ones takes them once spot capacity has run out.

// findStopped lists the hosts that could be started for the request.
func (p *Provision) findStopped(ctx context.Context, now time.Time) (op.Progress, error) {
	p.sel.askedStopped = true
	onDemand := lifecycle.QueueName{ResourceClass: p.q.Spec.ResourceClass, UsageClass: lifecycle.UsageOnDemand}
	if p.queueName() != onDemand && !p.q.OnDemand {
		return op.Again, nil
	}
	found, err := p.env.Hosts.StoppedHosts(ctx, p.q.Spec.Pool, onDemand)
	if err != nil {
		return op.Again, err
	}
	p.sel.stopped = slices.DeleteFunc(found, func(r lifecycle.Record) bool {
		return r.TrustKey != p.trustKey() && !r.Unused() || !r.Startable(now, p.policy().ClaimMargin) || p.unfit(r.Message()) != ""
	})
	slices.SortStableFunc(p.sel.stopped, func(a, b lifecycle.Record) int { return strings.Compare(b.TrustKey, a.TrustKey) }) // fresh ones last
	return op.Again, nil
}

// claimStopped takes the next of them. One that another request took is passed over.
func (p *Provision) claimStopped(ctx context.Context, now time.Time) (op.Progress, error) {
	r := p.sel.stopped[0]
	terms, err := p.termsFor(ctx, r.Message())
	if errors.Is(err, lifecycle.ErrConflict) {
		p.sel.stopped = p.sel.stopped[1:]
		return op.Again, nil
	}
	if err != nil {
		return op.Again, err
	}
	next, err := r.Started(p.claimOf(r.Message(), terms, now.Add(p.policy().CreationTimeout), now))
	if err != nil {
		return op.Again, fmt.Errorf("start host %s: %w", r.InstanceID, err)
	}
	stored, err := p.env.Store.UpdateInstance(ctx, next)
	if errors.Is(err, lifecycle.ErrConflict) {
		if stored, err = p.env.Store.Instance(ctx, r.HostKey); err == nil && !hosts.Serves(stored, p.q) { // else it is our own write, whose answer was lost
			p.sel.missed = arrival.With(p.sel.missed, arrival.MissLost)
			p.withdrawJIT(ctx)
			p.sel.stopped = p.sel.stopped[1:]
			return op.Again, nil
		}
	}
	if err != nil {
		return op.Again, fmt.Errorf("start host %s: %w", r.InstanceID, err)
	}
	p.jit, p.sel.stopped = jit{}, p.sel.stopped[1:]
	p.noteClaim(stored)
	p.starting = append(p.starting, stored.HostKey)
	p.Events.RecordEffect(lifecycle.Event{
		At: now, InstanceID: r.InstanceID, Repository: stored.Repository, RunID: stored.RunID, RequestID: stored.RequestID,
		Assignment: stored.Assignment, Action: lifecycle.ActionStart, From: r.Condition(), To: stored.Condition(), Reason: stored.Reason, Code: stored.ReasonCode,
	})
	return op.Again, nil
}

// startMachine tells the cloud to start the machine of the next host that was taken. If it has no capacity for it, the host is stopped again,
// and the request looks for another one.
func (p *Provision) startMachine(ctx context.Context, now time.Time) (op.Progress, error) {
	key := p.starting[0]
	if r := p.hosts[key]; r.Starting() && hosts.Serves(r, p.q) {
		d := lifecycle.Decision{Action: lifecycle.ActionStartMachine}
		r, _, err := p.env.Hosts.Power(ctx, &p.Events, p.facts(key), d, now)
		if err != nil {
			return op.Again, err
		}
		p.Events.Effects++
		p.hosts[key] = r
	}
	p.starting = p.starting[1:]
	return op.Again, nil
}
