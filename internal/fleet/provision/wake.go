package provision

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/hosts"
	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// A request that has taken hosts wakes others in their place, so that the next request finds as many awake. It does so after its
// claims, while its hosts register, and so no caller waits for it. If a crash comes before it, the next request or the next look at a
// host that rests makes up for it.

// restingKeys are the trust keys of the groups whose hosts may rest and serve the request.
func (p *Provision) restingKeys() (keys []string) {
	if p.policy().MayRest(false) {
		keys = append(keys, p.trustKey())
	}
	if p.policy().MayRest(true) && p.env.Pools[p.q.Spec.Pool].HasUnused() {
		keys = append(keys, "")
	}
	return keys
}

// findResting has a request for more hosts than stay awake begin with those that rest: what it lacks beyond those that stay awake.
// They read their records while the others are claimed, and the request does not first wait for an empty queue.
func (p *Provision) findResting(ctx context.Context, now time.Time) (op.Progress, error) {
	lacks := p.lacks() - p.policy().Awake
	page, err := p.env.Store.PooledInstances(ctx, p.q.Spec.Pool, p.queueName(), p.restingKeys()[p.sel.resting], lifecycle.PageOf{Limit: min(lacks, lifecycle.DefaultPageSize)})
	if err != nil {
		return op.Again, fmt.Errorf("list hosts that rest: %w", err)
	}
	p.sel.resting++
	for _, r := range page.Items {
		if m := r.Message(); r.Resting() && p.unfit(m) == "" && p.unclaimable(r, now) == "" {
			p.sel.candidates = append(p.sel.candidates, candidate{Message: m})
		}
	}
	return op.Again, nil
}

// noteGroup notes the group of a claimed host, if hosts of such a group may rest.
func (p *Provision) noteGroup(m lifecycle.Message) {
	g := hosts.Group{Pool: m.Pool, Queue: lifecycle.QueueName{ResourceClass: m.ResourceClass, UsageClass: m.UsageClass}, TrustKey: m.TrustKey}
	if p.policy().MayRest(m.TrustKey == "") && !slices.Contains(p.sel.took, g) {
		p.sel.took = append(p.sel.took, g)
	}
}

// findAsleep looks for hosts of a group that rest and are to be awake.
func (p *Provision) findAsleep(ctx context.Context, now time.Time) (op.Progress, error) {
	asleep, d, err := p.env.Hosts.Asleep(ctx, p.sel.took[0], now)
	if err != nil {
		return op.Again, err
	}
	p.sel.asleep, p.sel.waking, p.sel.took = asleep, d, p.sel.took[1:]
	return op.Again, nil
}

// wakeOne wakes one of them. With the last of them the messages of all go to their queue.
func (p *Provision) wakeOne(ctx context.Context, now time.Time) (op.Progress, error) {
	p.Events.HoldsOffers = len(p.sel.asleep) > 1
	err := p.env.Hosts.SetRest(ctx, &p.Events, p.sel.asleep[0], p.sel.waking, now)
	p.Events.HoldsOffers = false
	if err != nil {
		return op.Again, err
	}
	p.sel.asleep = p.sel.asleep[1:]
	return op.Again, nil
}
