// Package hosts is what a fleet does with one host: it loads what is known of it, asks lifecycle.Decide, and
// applies the decision in one conditional write. It also keeps what decisions depend on beside the record:
// reports, the fleet's hold, and the health of the store and of GitHub.
package hosts

import (
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/fleet/ports"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// Hosts acts on single hosts. Its exported fields are its parts: they are set before
// the first call and not changed after it. It is safe for concurrent use.
type Hosts struct {
	Store  ports.Store
	Queue  ports.Queue
	GitHub ports.GitHub
	// Guards keeps the fleet's hold; nil: there is none.
	Guards ports.GuardStore
	// JobStore keeps the jobs; nil: there are none.
	JobStore ports.JobStore
	Compute  ports.Machines
	// Ender ends machines. Only EndMachines uses it.
	Ender Ender

	Pools map[string]ports.Pool
	// Limited: there are limits on the hosts of runs.
	Limited bool
	// After are called in order after each write of a record.
	After []AfterFunc

	// HostKey makes a host key of an instance id.
	HostKey      func(instanceID string) string
	GitHubHealth *GitHubHealth
	Templates    Templates
	Timing       ports.Timing
	Log          hclog.Logger
	Observer     ports.Observer
	Ops          *op.Driver

	watch storeHealth
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
