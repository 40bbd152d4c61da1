package provision

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/arrival"
	"github.com/remuda-ci/remuda/internal/lifecycle/cache"
	"github.com/remuda-ci/remuda/internal/policy"
)

// A request chooses among the idle hosts of a pool with caches by what they have. A queue would show it only hosts at random, and what it did not take
// would have to go back. So the hosts of such a pool are in no queue: the request reads the newest of them from the index, in one call, which takes
// the place of those to send, receive and delete a message.

// newestAtLeast is how many of the newest idle hosts a request chooses among, if there are so many. To read them costs less than the messages would have
// cost. In the recorded working day (docs/caches.md) it finds 99 of 100 hosts with 10, and all with 20.
const newestAtLeast = 10

// oldestAtLeast is how many of the oldest idle hosts it reads when others took all those. Further pages are full ones.
const oldestAtLeast = 25

// candidate is an idle host that the index listed, and why it was chosen before others; zero: it was not.
type candidate struct {
	lifecycle.Message
	chosen policy.Reason
}

// queued reports whether the idle hosts of the pool are in a queue.
func (p *Provision) queued() bool { return !p.env.Pools[p.q.Spec.Pool].ByCaches() }

// findNewest lists the newest idle hosts of the run's trust key. A short list does not say that there are no more: hosts that were just claimed are in
// the index for a moment, and are left out of what it lists.
func (p *Provision) findNewest(ctx context.Context, now time.Time) (op.Progress, error) {
	limit := min(max(newestAtLeast, 2*p.lacks()), lifecycle.DefaultPageSize)
	newest, err := p.env.Store.ClaimablePooled(ctx, p.q.Spec.Pool, p.queueName(), p.trustKey(), limit)
	if err != nil {
		return op.Again, fmt.Errorf("list the newest pooled hosts: %w", err)
	}
	p.sel.newestDone = true
	p.addCandidates(newest, now)
	return op.Again, nil
}

// addCandidates adds those of the listed hosts that the request may have. In a pool with caches the best come first. It changes the list.
func (p *Provision) addCandidates(listed []lifecycle.Record, now time.Time) {
	fit := slices.DeleteFunc(listed, func(r lifecycle.Record) bool {
		miss := cmp.Or(p.unfit(r.Message()), p.unclaimable(r, now))
		if miss != "" {
			p.sel.missed = arrival.With(p.sel.missed, miss)
		}
		return miss != ""
	})
	if p.queued() {
		for _, r := range fit {
			p.sel.candidates = append(p.sel.candidates, candidate{Message: r.Message()})
		}
		return
	}
	for _, s := range policy.Affinity(p.want(), fit) {
		p.sel.candidates = append(p.sel.candidates, candidate{s.Host.Message(), s.Reason})
	}
}

// want is what the request looks for. A host for one job of any repository of an owner has the caches of the owner alone.
func (p *Provision) want() policy.Want {
	specs := p.env.Pools[p.q.Spec.Pool].Caches
	return policy.Want{
		Caches: cache.Keys(specs, cmp.Or(p.q.Spec.JobsOf, p.q.Repository)), Listening: cache.Keys(specs, p.trustKey()),
		Repository: p.q.Repository, RequestID: p.q.RequestID,
	}
}
