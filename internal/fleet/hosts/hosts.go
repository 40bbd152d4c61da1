// Package hosts is what a fleet does with one host: it loads what is known of it, asks lifecycle.Decide, and
// applies the decision in one conditional write. It also keeps what decisions depend on beside the record:
// reports, the fleet's hold, and the health of the store and of GitHub.
package hosts

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/fleet/ports"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/fleethold"
	"github.com/remuda-ci/remuda/internal/policy/price"
)

// Hosts acts on single hosts. Its exported fields are its parts: they are set before
// the first call and not changed after it. It is safe for concurrent use.
type Hosts struct {
	Store  ports.Store
	Queue  ports.Queue
	GitHub ports.GitHub
	// Sources says what runs were started by; nil: the views of caches are thrown away.
	Sources ports.GitHubSources
	// Guards keeps the fleet's hold; nil: there is none.
	Guards ports.GuardStore
	// JobStore keeps the jobs; nil: there are none.
	JobStore ports.JobStore
	Compute  ports.Machines
	// Ender ends, stops, starts and renews machines. Only EndMachines, Power and ReplaceRoot use it.
	Ender Ender

	Pools map[string]ports.Pool
	// Prices are what an hour of a machine costs; nil: costs are not observed.
	Prices *price.List
	// Limited: there are limits on the hosts of runs.
	Limited bool
	// After are called in order after each write of a record.
	After []AfterFunc

	// RandomText makes the labels of hosts that listen ahead of need; nil: crypto/rand's.
	RandomText func() string
	// AtOnce is on how many hosts an operation works at once. With 1 all is done on the caller's goroutine, so a simulation can be repeated.
	AtOnce int
	// HostKey makes a host key of an instance id.
	HostKey      func(instanceID string) string
	GitHubHealth *GitHubHealth
	Templates    Templates
	Timing       ports.Timing
	Log          hclog.Logger
	Observer     ports.Observer
	Ops          *op.Driver

	health storeHealth
	// unstored is a hold of the fleet that the store did not take; nil: there is none. It is never changed in place.
	unstored atomic.Pointer[fleethold.Hold]
	// malformed has the keys of the hosts whose report was last malformed.
	malformed sync.Map
}

func ClockTime(t time.Time) string { return t.UTC().Format("15:04:05Z") }

// Policy is that of a pool. A pool that is not configured has the default numbers, and its
// hosts are not reused.
func (hs *Hosts) Policy(pool string) lifecycle.Policy {
	if p, ok := hs.Pools[pool]; ok {
		return p.Policy
	}
	p := lifecycle.DefaultPolicy()
	p.Reuse = lifecycle.ReuseNone
	return p
}

// InvalidError names a field of a request and the rule that it broke.
type InvalidError struct {
	Field, Rule string
}

func (e *InvalidError) Error() string { return fmt.Sprintf("%s: %s", e.Field, e.Rule) }

// HeldError says that an operator's hold forbids an order.
type HeldError struct {
	InstanceID string
	Until      time.Time
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("instance %s is held by an operator until %s; take the hold away first",
		e.InstanceID, e.Until.UTC().Format(time.RFC3339))
}

// StateError says that an order does not fit the state of its host.
type StateError struct {
	InstanceID, State, Order string
}

func (e *StateError) Error() string {
	return fmt.Sprintf("instance %s is %s: cannot %s it", e.InstanceID, e.State, e.Order)
}

// Templates asks for the versions of the pools' launch templates, and remembers them: decisions
// use the last answer and cost no call. A launch and the cloud sweep ask, so a replica that
// does neither may pool a host whose template is outdated. The sweep retires it then.
type Templates struct {
	Ask func(ctx context.Context, pool string) (string, error) // nil: there are no versions

	mu    sync.Mutex
	heard map[string]string // by pool
}

// version asks for the current version of a pool's template.
func (t *Templates) version(ctx context.Context, pool string) (string, error) {
	if t.Ask == nil {
		return "", nil
	}
	version, err := t.Ask(ctx, pool)
	if err != nil {
		return "", err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.heard == nil {
		t.heard = map[string]string{}
	}
	t.heard[pool] = version
	return version, nil
}

// last is what version last returned for a pool; empty: there was no answer yet.
func (t *Templates) last(pool string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.heard[pool]
}

// KnowTemplate asks for the current version of a pool's launch template, unless this replica has asked before.
func (hs *Hosts) KnowTemplate(ctx context.Context, pool string) error {
	if hs.Templates.last(pool) != "" {
		return nil
	}
	_, err := hs.Templates.version(ctx, pool)
	return err
}

// TemplateVersion asks for the current version of a pool's launch template; empty: there are no versions.
func (hs *Hosts) TemplateVersion(ctx context.Context, pool string) (string, error) {
	return hs.Templates.version(ctx, pool)
}
