// Package warm keeps pools topped up with hosts that were launched ahead of need.
package warm

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/fleet/hosts"
	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/fleet/ports"
	"github.com/remuda-ci/remuda/internal/fleet/provision"
	"github.com/remuda-ci/remuda/internal/fleet/quota"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/warmrequest"
	"github.com/remuda-ci/remuda/internal/policy"
)

// ahead is what the pool of a row launches ahead of need; nil: nothing any more.
func (w *Pools) ahead(q lifecycle.Request) *ports.WarmPool { return w.Pools[q.Spec.Pool].Ahead(q.Kind) }

// warmSpec is what the fresh hosts of a pool are launched with. One that has no warm
// hosts launches none, and its row keeps what it had.
func (w *Pools) warmSpec(q lifecycle.Request) lifecycle.Spec {
	warm := w.ahead(q)
	if warm == nil {
		return q.Spec
	}
	spec := warm.Spec
	spec.Pool = q.Spec.Pool
	return spec
}

// WarmWanted is how many fresh hosts a pool is to have ready: of kind RequestWarm, or of RequestStopped.
func (w *Pools) WarmWanted(kind lifecycle.RequestKind, pool string, now time.Time) int {
	warm := w.Pools[pool].Ahead(kind)
	if warm == nil {
		return 0
	}
	wanted, _ := warm.Policy.Wanted(now)
	return wanted
}

// warmHosts are the records that a pool's row names and that live, as the policy sees them, and what is left
// of the row's list: a host that was claimed is not fresh any more, and one that has ended is gone.
type warmHosts struct {
	records map[string]lifecycle.Record // by instance id
	seen    []policy.WarmHost
	taken   []lifecycle.Taken
	// failed of those that are gone never came up; some came up: one did.
	failed, some bool
}

// unfit says why a host is not what the pool launches now; empty: it is.
func (h warmHosts) unfit(instanceID string) string {
	i := slices.IndexFunc(h.seen, func(w policy.WarmHost) bool { return w.InstanceID == instanceID })
	return h.seen[i].Unfit
}

// warmHosts reads the hosts of a warm pool: in two batched, consistent reads, so
// that none is launched twice for a lagging index.
func (w *Pools) warmHosts(ctx context.Context, q lifecycle.Request, now time.Time) (warmHosts, error) {
	keys := make([]string, 0, len(q.Taken))
	for _, t := range q.Taken {
		keys = append(keys, t.HostKey)
	}
	records, err := w.Store.Instances(ctx, keys)
	if err != nil {
		return warmHosts{}, fmt.Errorf("read the warm hosts of pool %s: %w", q.Spec.Pool, err)
	}
	reports, err := w.Hosts.Reports(ctx, keys, now)
	if err != nil {
		return warmHosts{}, err
	}
	h := warmHosts{records: map[string]lifecycle.Record{}}
	for _, r := range records {
		h.some = h.some || r.Pooled() || r.Stopped() || !r.Unused()
		h.failed = h.failed || w.neverCameUp(r)
		if r.State != lifecycle.StateIdle || !r.Unused() || r.Renewed() {
			continue
		}
		h.records[r.InstanceID] = r
		h.seen = append(h.seen, w.warmHost(r, reports[r.HostKey], w.warmSpec(q), now))
	}
	h.taken = slices.DeleteFunc(slices.Clone(q.Taken), func(t lifecycle.Taken) bool {
		_, lives := h.records[t.InstanceID]
		return !lives
	})
	return h, nil
}

// neverCameUp: the host ended in the time that it has to become ready. One that
// EC2 took back or that was not wanted any more tells nothing of the next.
func (w *Pools) neverCameUp(r lifecycle.Record) bool {
	return r.State == lifecycle.StateTerminated && r.Unused() && !r.Retiring && r.InterruptionAt.IsZero() &&
		r.UpdatedAt.Sub(r.CreatedAt) <= w.Hosts.Policy(r.Pool).CreationTimeout+comeUpSlack
}

// comeUpSlack is how late a sweep may end a host that did not come up.
const comeUpSlack = time.Minute

// coming reports whether a fresh host is not ready yet: it is to be pooled, or stopped.
func coming(r lifecycle.Record) bool {
	if r.ToStop {
		return !r.Stopped() || r.Stop.StoppedAt.IsZero()
	}
	return r.Releasing()
}

func (w *Pools) warmHost(r lifecycle.Record, p lifecycle.Report, spec lifecycle.Spec, now time.Time) policy.WarmHost {
	h := policy.WarmHost{
		InstanceID: r.InstanceID, Coming: coming(r), Busy: p.Busy, Held: r.Held(now) && !r.FleetHeld, Kept: r.FleetHeld, Retiring: r.Retiring,
		Interrupted: !r.InterruptionAt.IsZero() || !p.InterruptionAt.IsZero() || !p.RebalanceAt.IsZero(),
	}
	if !h.Coming {
		h.EndsAt = r.Threshold.Add(-w.Hosts.Policy(r.Pool).ClaimMargin)
	}
	fallback := spec.AllowOnDemand && r.UsageClass == lifecycle.UsageOnDemand
	if r.ResourceClass != spec.ResourceClass || r.UsageClass != spec.UsageClass && !fallback {
		h.Unfit = fmt.Sprintf("it is of class %s on %s, and its fresh hosts are of class %s on %s now", r.ResourceClass, r.UsageClass, spec.ResourceClass, spec.UsageClass)
	}
	return h
}

// NewClose begins a sweep of one row that is due because no sweep tops it up: the
// configuration has no such hosts for its pool, or no such pool. A launch that was cut short is
// adopted, the unused hosts are retired, and the row goes once none of them is left.
func (w *Pools) NewClose(q lifecycle.Request) *Sweep {
	s := &Sweep{env: w, Stages: w.Ops.Stages("due")}
	if w.ahead(q) == nil {
		s.lines = []line{{q.Spec.Pool, q.Kind}}
	}
	s.Next = s.load
	return s
}

// close retires the hosts of a pool without warm hosts.
func (s *Sweep) close(ctx context.Context, q lifecycle.Request, hosts warmHosts, now time.Time) (op.Progress, error) {
	hold, err := s.env.Hosts.FleetHold(ctx)
	if err != nil {
		return op.Again, err
	}
	facts := policy.WarmFacts{Hosts: hosts.seen}
	if hold.InForce(now) {
		facts.Held = hold.String()
	}
	d := policy.TopUp(policy.WarmPolicy{}, facts, now)
	d.Code, d.Reason = lifecycle.ReasonWarmRemoved, "the configuration has no warm hosts for it any more"
	if facts.Held != "" {
		d.Reason += ", and " + facts.Held
	}
	s.tell(q, d, now)
	s.willRetire(d, hosts)
	q = warmrequest.Checked(q, now)
	if len(q.Taken) == 0 {
		q.DueAt, q.ExpiresAt = time.Time{}, now.Add(s.env.Timing.KeepRequests)
	}
	return s.write(ctx, q, s.end)
}

// Pools are the warm pools of a fleet. The exported fields are its parts: they are set
// before the first call and not changed after it. It is safe for concurrent use.
type Pools struct {
	Store     ports.Store
	Hosts     *hosts.Hosts
	Quota     *quota.Ledger
	Provision *provision.Provisioner
	Pools     map[string]ports.Pool
	// Exhausted are the offerings of a usage class that were short of capacity
	// recently: a launch leaves them out.
	Exhausted func(lifecycle.UsageClass) []lifecycle.Offering
	Timing    ports.Timing
	Log       hclog.Logger
	Ops       *op.Driver
}
