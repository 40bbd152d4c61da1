package cost_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/cost"
	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/cache"
)

// cached is what a run of a pool with caches uses, with so many idle hosts to choose among.
type cached struct {
	idle, hosts    int
	claim, release cost.Usage
}

// cachedClaims are how many hosts a run takes of how many that wait. A claim of one host looks at 10 of them.
var cachedClaims = []struct{ idle, hosts int }{{1, 1}, {10, 1}, {500, 1}, {10, 10}, {500, 10}}

// pushes says that each run is a push to a protected branch.
type pushes struct{}

func (pushes) RunSource(context.Context, string, string) (cache.Source, error) {
	return cache.Source{Event: "push", Branch: "main", SHA: "a1", RepositoryID: 7, HeadRepositoryID: 7}, nil
}

func (pushes) Branch(context.Context, string, string, string) (cache.Branch, error) {
	return cache.Branch{Has: true, Protected: true}, nil
}

func (pushes) Mirror(context.Context, string, string) (lifecycle.Mirror, error) {
	return lifecycle.Mirror{}, lifecycle.ErrUnavailable
}

func measureCaches(t *testing.T) (all []cached) {
	for _, c := range cachedClaims {
		t.Run(fmt.Sprintf("%d of %d", c.hosts, c.idle), func(t *testing.T) { all = append(all, measureCachedHosts(t, c.idle, c.hosts)) })
	}
	return all
}

// measureCachedHosts lets a run claim hosts, and give them back with two caches of its repository, on hosts that have two caches of others as well.
func measureCachedHosts(t *testing.T, idle, hosts int) cached {
	w := newWorld(t)
	specs := []cache.Spec{{Name: "go", Paths: []string{"~/go"}, Size: 1 << 30}, {Name: "npm", Paths: []string{"~/.npm"}, Size: 1 << 30}}
	w.fleet = w.newFleet(w.compute, func(o *fleet.Options) {
		p := o.Pools["default"]
		p.Caches = specs
		o.Pools["default"], o.Sources = p, pushes{}
	})
	w.provision("1", 1, 0, time.Time{}) // what a process asks for once
	var held []cache.Held
	for _, key := range append(cache.Keys(specs, repository), cache.Keys(specs, "acme/other")...) {
		held = append(held, cache.Held{Key: key, Bytes: 1 << 30, CommittedAt: w.clock.now()})
	}
	var records []lifecycle.Record
	for n := range idle {
		r := w.pooled(instanceID(n))
		r.Caches, r.PooledAt = cache.ListOf(held...), r.PooledAt.Add(-time.Duration(n)*time.Second)
		records = append(records, r)
	}
	w.create(records...)
	m := cached{idle: idle, hosts: hosts}
	m.claim = w.meter.of(func() { w.provision("2", hosts, hosts, time.Time{}) })
	m.release = w.meter.of(func() { w.release("2", hosts) })
	return m
}

func (m measured) cachesPart(line liner) {
	line(`
## Claims by caches

A claim in a pool with [caches](caches.md#which-host-a-run-gets) reads the newest idle hosts from the index, at most 10 or twice as many as it takes, and no
message. Here each host has four caches. A release asks GitHub as well: see [who may write](caches.md#who-may-write).

| idle hosts | taken | calls of the claim | read units | write units | dollars | calls of the release | dollars |
|---|---|---|---|---|---|---|---|`)
	for _, c := range m.caches {
		line("| %d | %d | %s | %s | %s | %s | %s | %s |", c.idle, c.hosts, count(c.claim.Without(batchRead).Total()), count(c.claim.ReadUnits), count(c.claim.WriteUnits),
			money(c.claim.Dollars(prices)), count(c.release.Without(batchRead).Total()), money(c.release.Dollars(prices)))
	}
	line(`
The same claim and release by the queue take %s and %s calls for one host, and %s and %s for ten.`,
		count(m.requests[0].claim.Without(batchRead).Total()), count(m.requests[0].release.Without(batchRead).Total()),
		count(m.requests[1].claim.Without(batchRead).Total()), count(m.requests[1].release.Without(batchRead).Total()))
}

// checkCaches: a claim by caches takes fewer calls than one by the queue, however many hosts wait, and uses no queue.
func (m measured) checkCaches(t *testing.T) {
	byQueue := map[int]served{}
	for _, s := range m.requests {
		byQueue[s.hosts] = s
	}
	for _, c := range m.caches {
		calls, most := c.claim.Without(batchRead).Total(), byQueue[c.hosts].claim.Without(batchRead).Total()
		if calls >= most {
			t.Errorf("a claim of %d among %d hosts takes %v calls, and by the queue it takes %v", c.hosts, c.idle, calls, most)
		}
		if calls, most := c.release.Without(batchRead).Total(), byQueue[c.hosts].release.Without(batchRead).Total(); calls >= most {
			t.Errorf("a release of %d hosts takes %v calls, and by the queue it takes %v", c.hosts, calls, most)
		}
		for _, used := range []cost.Usage{c.claim, c.release} {
			for call, n := range used.Calls {
				if call.Service == "sqs" {
					t.Errorf("%v is called %v times", call, n)
				}
			}
		}
	}
}
